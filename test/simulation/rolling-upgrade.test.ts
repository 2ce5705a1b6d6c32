/** Members that a newer petstore added under the same format: an older one reads the record, changes it, and keeps them. */

import { ANONYMOUS, openCall } from "@petstore/rpc/call";
import { type Decide, type Doc, type Indexes, put, type Schema, schema } from "@petstore/store/port";
import { describe, expect, test } from "vitest";
import { emptyData, openMemory } from "../../packages/store/memory/memory.ts";
import { CATEGORIES, toCategory } from "../../services/category/model.ts";
import * as category from "../../services/category/rules.ts";
import { INVENTORY, toInventoryItem } from "../../services/inventory/model.ts";
import * as inventory from "../../services/inventory/rules.ts";
import { ORDERS, toOrder } from "../../services/order/model.ts";
import * as order from "../../services/order/rules.ts";
import { createDeletionGuard } from "../../services/pet/deletion-guard.ts";
import { DELETION_GUARDS, PETS, toPet } from "../../services/pet/model.ts";
import * as pet from "../../services/pet/rules.ts";
import {
  type Attempt,
  abandoned,
  accepted,
  createKeys,
  type Resolved,
} from "../../services/records/idempotency-keys.ts";
import { KEYS } from "../../services/records/key-transitions.ts";
import { RETENTION } from "../../services/records/retention.ts";

const NEWER = { text: "kept", list: [{ deep: 1 }] };

/** A record that a newer petstore has stored, as this one finds it. `nested` are members that hold objects. */
async function stored<T extends Doc, const I extends Indexes<T>>(
  of: Schema<T, I>,
  first: readonly ((doc: T | undefined, rev: number) => unknown)[],
  nested: readonly string[] = [],
) {
  const data = emptyData();
  const store = openMemory({ data });
  const collection = await store.collection(of);
  for (const decide of first) await collection.update(1, decide as Decide<T, unknown>);
  const newer = await openMemory({ data }).collection(schema<Doc>()(of.name, of.indexes as Indexes<Doc>));
  await newer.update(1, (doc) => {
    const fields = doc as Doc & Record<string, object>;
    const added = Object.fromEntries(nested.map((name) => [name, { ...fields[name], newer: NEWER }]));
    return put({ ...fields, ...added, newer: NEWER }, undefined);
  });
  const expectKept = async (where: readonly string[] = nested) => {
    const doc = (await collection.get(1)) as (T & Record<string, unknown>) | undefined;
    expect(doc?.newer).toEqual(NEWER);
    for (const name of where) expect(doc?.[name]).toMatchObject({ newer: NEWER });
    expect(await collection.getMany([1])).toEqual([doc]);
    expect(await collection.list({ limit: 1, order: "asc" })).toEqual([doc]);
  };
  await expectKept();
  return { store, collection, expectKept };
}

/** Each change is a list of rules, applied one after the other; each must store something. */
function keeps<T extends Doc, const I extends Indexes<T>>(
  of: Schema<T, I>,
  first: readonly ((doc: T | undefined, rev: number) => unknown)[],
  changes: Readonly<Record<string, readonly ((doc: T | undefined, rev: number) => unknown)[]>>,
  { nested = [], gone = [] }: { nested?: readonly string[]; gone?: readonly string[] } = {},
): void {
  test.each(Object.entries(changes))("%s", async (name, rules) => {
    const { collection, expectKept } = await stored(of, first, nested);
    for (const decide of rules) {
      const before = (await collection.get(1))?.rev ?? 0;
      await collection.update(1, decide as Decide<T, unknown>);
      expect((await collection.get(1))?.rev).toBe(before + 1);
    }
    // What a client said goes with the record, whoever knew it.
    await expectKept(gone.includes(name) ? [] : nested);
  });
}

describe("a category keeps them through", () => {
  keeps(CATEGORIES, [category.insert(1, { name: "dogs", description: "d" })], {
    update: [category.update(1n, { name: "cats" }, {})],
    "deletion given up": [category.beginDeletion(1n, {}), category.endDeletion(1, "ACTIVE")],
    deletion: [category.beginDeletion(1n, {}), category.endDeletion(1, "DELETED")],
  });
});

describe("a pet keeps them through", () => {
  const stock = (statusRev: number) => ({ status: "pending", statusRev }) as const;
  const fresh = [pet.insert(1, { facts: { name: "Rex" }, categoryId: 1 })];
  const nested = ["facts"];
  keeps(PETS, fresh, { creation: [pet.activate(stock(1))], refusal: [pet.abort] }, { nested, gone: ["refusal"] });
  keeps(
    PETS,
    [...fresh, pet.activate(stock(1))],
    {
      "a new name": [pet.beginUpdate(1n, { facts: { name: "Max" } }, {}, undefined)],
      "a status": [pet.applyStatus(1n, { status: "sold", statusRev: 2 })],
      "a move": [pet.beginUpdate(1n, { categoryId: 2 }, {}, "exists"), pet.applyIntent(1, stock(2))],
      "a move that is refused": [
        pet.beginUpdate(1n, { categoryId: 2 }, {}, "exists"),
        pet.dropIntent(1, "CATEGORY_NOT_FOUND"),
      ],
      deletion: [pet.beginDeletion(1n, {}), pet.applyDeletion(1)],
    },
    { nested, gone: ["deletion"] },
  );
});

describe("an inventory entry keeps them through", () => {
  keeps(
    INVENTORY,
    [inventory.open(1, "available")],
    {
      "an order": [inventory.reserve(7, 1, "tag"), inventory.commit(7, 1)],
      "an order that is given back": [inventory.reserve(7, 1, "tag"), inventory.release(7)],
      "an order that lost its reservation": [inventory.commit(7, 1)],
      "a quantity": [inventory.update(1n, { quantity: 9 }, {})],
      "being published": [
        inventory.reserve(7, 1, "tag"),
        (doc, rev) => inventory.markPublished(doc?.statusRev ?? 0)(doc, rev),
      ],
    },
    { nested: ["lastOp"] },
  );
  keeps(INVENTORY, [inventory.open(1, "available")], {
    "a listing": [inventory.setListing(1, "pending")],
    retirement: [inventory.retire(1)],
  });
});

describe("an order keeps them through", () => {
  const shipDate = { seconds: 5, nanos: 6 };
  keeps(
    ORDERS,
    [order.insert(1, { petId: 7, shipDate }, "tag")],
    {
      completion: [order.update(1n, { complete: true }, {})],
      cancellation: [order.cancel(1n, {})],
    },
    { nested: ["shipDate"], gone: ["cancellation"] },
  );
});

test("a deletion guard keeps them, closed and open", async () => {
  const { store, collection, expectKept } = await stored(DELETION_GUARDS, [
    () => put({ _id: 1, closed: false, op: 1 }, 0),
  ]);
  const { pets } = { pets: await store.collection(PETS) };
  const deletionGuard = createDeletionGuard({
    guards: collection,
    pets,
    failpoint: () => {},
    clock: () => 0,
    retention: RETENTION,
  } as never);
  const progress = { hasBegun: false };
  const callContext = { deadline: Number.POSITIVE_INFINITY, requestId: "r-1", caller: "ann", progress };
  await deletionGuard.close(1, 2, callContext);
  await expectKept();
  await deletionGuard.open(1, 2, callContext);
  expect(await collection.get(1)).toMatchObject({ closed: false, op: 2 });
  await expectKept();
});

test("a key keeps them when it is renewed, and when it names a fresh record", async () => {
  const HOUR = 3_600_000;
  let now = 0;
  const store = openMemory();
  const collection = await store.collection(KEYS);
  const runtime = { clock: () => now, random: () => 0 };
  const keys = createKeys(collection, "record", { ...runtime, store, failpoint: () => {}, retention: RETENTION });
  const create = (run: (attempt: Attempt) => Promise<Resolved<number>>) => {
    const headers = new Headers();
    const opened = openCall({ headers, timeoutMs: 1e9 }, { ...runtime, maxTimeoutMs: 1e9, principal: ANONYMOUS });
    const call = { ...opened, headers, responseHeaders: new Headers() };
    return keys.create(call, { rpc: "Create", requestId: "k", params: { a: 1 }, stored: async () => undefined }, run);
  };
  const crash = () => Promise.reject(new Error("crash"));
  await expect(create(crash)).rejects.toThrow("crash");
  const [{ _id, hour } = expect.unreachable("no key")] = await collection.list({ limit: 1, order: "asc" });
  await collection.update(_id, (doc) => put({ ...doc, newer: NEWER } as never, undefined));
  now += 24 * HOUR;
  await expect(create(crash)).rejects.toThrow("crash");
  expect(await collection.get(_id)).toMatchObject({ hour: hour + 24, recordId: 1, newer: NEWER });
  await create(async ({ id }) => (id === 1 ? abandoned() : accepted(id)));
  expect(await collection.get(_id)).toMatchObject({ recordId: 2, newer: NEWER });
});

describe("a record of another format", () => {
  const found = async (format: number) =>
    stored(CATEGORIES, [category.insert(1, { name: "dogs" }), (doc) => put({ ...doc, format } as never, 0)]);
  test.each([1, 3])("%i is refused, with the advice to upgrade, and left out of lists", async (format) => {
    await expect(found(format)).rejects.toMatchObject({
      name: "Corrupt",
      message: expect.stringMatching(/\(format\).*upgrade/),
    });
  });
});

test("what callers see has none of them", () => {
  const facts = { name: "Rex", newer: NEWER };
  const seen = [
    toPet(1, { facts, categoryId: 1, status: "sold", version: 1 }),
    toCategory(1, { name: "dogs", newer: NEWER } as never, 1),
    toOrder(1, { quantity: 1, newer: NEWER } as never, 1),
    toInventoryItem({ _id: 1, quantity: 1, status: "sold", version: 1, newer: NEWER } as never),
  ];
  expect(seen.filter((message) => "newer" in message)).toEqual([]);
});
