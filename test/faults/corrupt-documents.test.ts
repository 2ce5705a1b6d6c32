/** Stored records that can't be read, in a petstore that runs: they harm only themselves. */
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reasonOf } from "#errors";
import type { ServiceName } from "../../processes/names.ts";
import { CATEGORIES } from "../../services/category/model.ts";
import { INVENTORY } from "../../services/inventory/model.ts";
import { ORDERS } from "../../services/order/model.ts";
import { PETS } from "../../services/pet/model.ts";
import { checkTellsNoSecrets, sendHttp } from "../api/cases/endpoints.ts";
import { openShop, type Shop } from "../api/cases/shop.ts";
import { eventually } from "../harness/eventually.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { BETWEEN_LOOKS_MS, wrongInTheStores } from "../harness/stores.ts";
import { type Collected, corruptDocuments, spoil } from "./corrupt-document.ts";
import { dying } from "./crash-at-failpoint.ts";

let petstore: Petstore;
let shop: Shop;
beforeAll(async () => {
  petstore = await startPetstore();
  shop = openShop(petstore);
});
afterAll(() => petstore?.stop());

const send = async (method: string, path: string, body?: object) => {
  const { status, headers, text } = await sendHttp(petstore.http, { method, path, body });
  return { status, headers, text, body: text === "" ? undefined : JSON.parse(text) };
};

/** The ids on all pages of a list. */
async function walk(first: string): Promise<number[]> {
  const ids: number[] = [];
  for (let path: string | undefined = first; path !== undefined; ) {
    const { status, headers, body } = await send("GET", path);
    expect(status).toBe(200);
    const page = (body as Record<string, number>[]).map((record) => record.id ?? record.petId ?? 0);
    expect([path, page]).not.toEqual([path, []]);
    ids.push(...page);
    path = /<([^>]+)>; rel="next"/.exec(headers.link ?? "")?.[1];
  }
  return ids;
}

interface Kind {
  readonly service: ServiceName;
  readonly schema: Collected;
  readonly path: string;
  readonly idName: "id" | "petId";
  make(): Promise<bigint>;
  get(id: bigint): Promise<unknown>;
  batch(ids: bigint[]): Promise<(bigint | undefined)[]>;
  readonly change: object;
  readonly isDeleted: boolean;
}

const kinds: Kind[] = [
  {
    service: "category",
    schema: CATEGORIES,
    path: "/categories",
    idName: "id",
    make: async () => (await shop.category()).id,
    get: (categoryId) => shop.categories.getCategory({ categoryId }),
    batch: async (categoryId) =>
      (await shop.categories.batchGetCategories({ categoryId })).categories.map(({ id }) => id),
    change: { name: "cat" },
    isDeleted: true,
  },
  {
    service: "pet",
    schema: PETS,
    path: "/pets",
    idName: "id",
    make: async () => (await shop.pet()).id,
    get: (petId) => shop.pets.getPet({ petId }),
    batch: async (petId) => (await shop.pets.batchGetPets({ petId })).pets.map(({ id }) => id),
    change: { name: "Max" },
    isDeleted: true,
  },
  {
    service: "inventory",
    schema: INVENTORY,
    path: "/store/inventory",
    idName: "petId",
    make: async () => (await shop.pet()).id,
    get: (petId) => shop.inventory.getInventory({ petId }),
    batch: async (petId) => (await shop.inventory.batchGetInventory({ petId })).items.map(({ petId: id }) => id),
    change: { quantity: 7 },
    isDeleted: false,
  },
  {
    service: "order",
    schema: ORDERS,
    path: "/store/orders",
    idName: "id",
    make: async () => (await shop.order({ quantity: 1 })).id ?? 0n,
    get: (orderId) => shop.orders.getOrder({ orderId }),
    batch: async (orderId) => (await shop.orders.batchGetOrders({ orderId })).orders.map(({ id }) => id),
    change: { shipDate: "2030-01-01T00:00:00Z" },
    isDeleted: true,
  },
];

const UNREADABLE = { status: 500, code: "INTERNAL" };

describe.each(kinds)("$schema.name", ({ service, schema, path, idName, make, get, batch, change, isDeleted }) => {
  const ids: bigint[] = [];
  let bad: bigint[];
  let good: bigint[];
  let repair: () => Promise<void>;
  let listed: number[];

  beforeAll(async () => {
    const changes = Object.values(corruptDocuments);
    for (let i = 0; i < 2 * changes.length; i++) ids.push(await make());
    // The newest two, the oldest, and one in between.
    bad = [7, 6, 4, 0].map((place) => ids[place] ?? 0n);
    good = ids.filter((id) => !bad.includes(id));
    listed = await walk(`${path}?limit=100`);
    repair = await spoil(petstore, service, schema, new Map(bad.map((id, i) => [Number(id), changes[i] ?? {}])));
  }, 120_000);

  test("who asks for one is told so, and the log names it", async () => {
    for (const id of bad) {
      const seen = await send("GET", `${path}/${id}`);
      expect(seen).toMatchObject({ status: 500, body: UNREADABLE });
      checkTellsNoSecrets(seen.text);
      const error = ConnectError.from(await get(id).catch((reason) => reason));
      expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Internal, UNREADABLE.code]);
      const words = `Document ${id} of ${schema.name} is not as this petstore writes it`;
      await expect.poll(() => petstore.logs(service)).toContain(words);
    }
  });

  test("it is neither changed nor deleted, and that is no matter of trying again", async () => {
    for (const id of bad) {
      expect(await send("PATCH", `${path}/${id}`, change)).toMatchObject({ status: 500, body: UNREADABLE });
      if (isDeleted) expect(await send("DELETE", `${path}/${id}`)).toMatchObject({ status: 500, body: UNREADABLE });
    }
  });

  test("lists go on without it, page by page and in both orders", async () => {
    const isGood = (id: number) => !bad.includes(BigInt(id));
    const expected = listed.filter(isGood);
    for (const limit of [1, 2, 100]) {
      expect(await walk(`${path}?limit=${limit}`)).toEqual(expected);
      expect(await walk(`${path}?limit=${limit}&orderBy=${idName}`)).toEqual(expected.toReversed());
    }
    const newest = good.map(Number).toReversed();
    expect(await walk(`${path}?limit=1&${idName}=${ids}`)).toEqual(newest);
    expect(await batch(ids)).toEqual(good);
  });

  test("the others change as always", async () => {
    for (const id of good) expect((await send("PATCH", `${path}/${id}`, change)).status).toBe(200);
  });

  test("and it is there again once it can be read", async () => {
    await repair();
    expect(await walk(`${path}?limit=100`)).toEqual(listed);
    for (const id of bad) expect((await send("PATCH", `${path}/${id}`, change)).status).toBe(200);
  });
});

test("a category is not deleted from under a pet that can't be read", async () => {
  const { id, categoryId } = await shop.pet();
  const repair = await spoil(petstore, "pet", PETS, new Map([[Number(id), corruptDocuments["an unknown state"]]]));
  expect(await send("DELETE", `/categories/${categoryId}`)).toMatchObject({ body: { code: "CATEGORY_IN_USE" } });
  await repair();
  expect((await send("GET", `/pets/${id}`)).status).toBe(200);
});

test("an order for a pet whose stock can't be read is not placed, and others are", async () => {
  const [spoiled, sound] = [await shop.stocked(5), await shop.stocked(5)];
  const place = async ({ id }: { id: bigint }) => (await send("POST", "/store/orders", { petId: Number(id) })).status;
  const before = await walk("/store/orders?limit=100");
  const repair = await spoil(
    petstore,
    "inventory",
    INVENTORY,
    new Map([[Number(spoiled.id), corruptDocuments["a newer format"]]]),
  );
  expect([await place(spoiled), await place(sound)]).toEqual([503, 201]);
  await repair();
  expect(await walk("/store/orders?limit=100")).toHaveLength(before.length + 1);
});

test("workers finish what they can read, and say what they can't", async () => {
  const [category, pet] = [await shop.category(), await shop.pet()];
  const corrupt = { pending: true, hasReservations: true, ...corruptDocuments["an unknown state"] };
  const spoiled = [
    ["category", CATEGORIES, category.id],
    ["pet", PETS, pet.id],
    ["inventory", INVENTORY, pet.id],
  ] as const;
  const repairs = [];
  for (const [service, schema, id] of spoiled)
    repairs.push(await spoil(petstore, service, schema, new Map([[Number(id), corrupt]])));

  const sold = await shop.pet();
  const { id: orderId } = await shop.order({ petId: sold.id });
  const [gone, stays] = [await shop.category(), await shop.category()];
  const killed = async (service: ServiceName, point: string, work: () => Promise<{ status: number }>) => {
    const answer = async () => ({ is: (await work()).status === 503 ? "unknown" : "done" }) as const;
    expect((await dying(petstore, service, point, answer)).is).toBe("unknown");
  };
  await killed("order", "order.complete", () => send("PATCH", `/store/orders/${orderId}`, { complete: true }));
  await killed("category", "category.deleting", () => send("DELETE", `/categories/${gone.id}`));
  await killed("pet", "pet.creating", () => send("POST", "/pets", { name: "Late", categoryId: Number(stays.id) }));

  await eventually(async () => (await send("GET", `/pets/${sold.id}`)).body.status, "sold");
  await eventually(async () => (await send("GET", `/categories/${gone.id}`)).status, 404);
  const names = async () => (await send("GET", "/pets?limit=1")).body.map(({ name }: { name: string }) => name);
  await eventually(names, ["Late"]);
  for (const [service, { name }, id] of spoiled) {
    const told = (line: string) => line.includes("is left out") && line.includes(`Document ${id} of ${name} `);
    await eventually(async () => petstore.logs(service).split("\n").some(told), true);
  }
  for (const repair of repairs) await repair();
}, 180_000);

test("in the end what is stored adds up", async () => {
  await eventually(() => wrongInTheStores(petstore), [], BETWEEN_LOOKS_MS);
}, 120_000);
