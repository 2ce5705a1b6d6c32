import { counter, histogram } from "@petstore/metrics/declaration";
import { createRegistry } from "@petstore/metrics/registry";
import { openMemory } from "@petstore/store/memory";
import { Corrupt, type Doc, Overloaded, put, type Store, schema, Unavailable } from "@petstore/store/port";
import { describe, expect, test } from "vitest";
import { recordedTracing } from "../packages/trace/fixtures/recorded.ts";
import { observed } from "./observed-store.ts";
import { type StoredRecord, traceOf, traceparentOf } from "./records/record.ts";

interface Pet extends Doc {
  readonly name: string;
}
const PETS = schema<Pet>()("pets", { name: ["name"] });
const OPERATIONS = histogram("operations", "", ["system", "namespace", "collection", "operation", "error"], [1]);
const CORRUPT = counter("corrupt", "", ["collection"]);

function start(store: Store = openMemory(), tracing?: Parameters<typeof observed>[3]) {
  const registry = createRegistry(() => 0);
  let time = 0;
  const now = () => (time += 2_000);
  const metrics = { operations: registry.histogram(OPERATIONS), corrupt: registry.counter(CORRUPT), now };
  const lines = () =>
    registry
      .text("plain")
      .split("\n")
      .filter((line) => /_(sum|count)|^corrupt/.test(line));
  return { store: observed(store, { system: "sqlite", namespace: "pet" }, metrics, tracing), lines };
}
const labels = (operation: string, more = "") =>
  `{system="sqlite",namespace="pet",collection="pets",operation="${operation}"${more}}`;

test("each operation is recorded with its time", async () => {
  const { store, lines } = start();
  const pets = await store.collection(PETS);
  await pets.update(1, () => put({ _id: 1, name: "Rex" }, undefined));
  expect(await pets.get(1)).toMatchObject({ name: "Rex" });
  await pets.get(2);
  await pets.getMany([1]);
  await pets.list({ limit: 1, order: "asc" });
  await pets.listByPrefix({ field: "name", prefix: "R", limit: 1 });
  await pets.remove(1, () => true);
  expect(await store.nextId("pets")).toBe(1);
  const expected = [
    ...[["update", 1] as const, ["get", 2] as const],
    ...(["getMany", "list", "listByPrefix", "remove"] as const).map((name) => [name, 1] as const),
  ].flatMap(([name, count]) => [
    `operations_sum${labels(name)} ${2 * count}`,
    `operations_count${labels(name)} ${count}`,
  ]);
  expect(lines().slice(0, -2)).toEqual(expected);
  expect(lines().at(-1)).toBe('operations_count{system="sqlite",namespace="pet",operation="nextId"} 1');
});

test("what fails is recorded by its kind; what a decision throws is no failure of the store", async () => {
  const failing = (error: Error) => {
    const get = () => Promise.reject(error);
    return { ...openMemory(), collection: async () => ({ get, update: get }) } as unknown as Store;
  };
  for (const [error, more, corrupt] of [
    [new Overloaded("the store"), ',error="Unavailable"', []],
    [new Corrupt("Document 1"), ',error="Corrupt"', ['corrupt{collection="pets"} 1']],
    [new RangeError("no such pet"), "", []],
  ] as const) {
    const { store, lines } = start(failing(error));
    const pets = await store.collection(PETS);
    await expect(pets.get(1)).rejects.toBe(error);
    expect(lines()).toEqual([
      `operations_sum${labels("get", more)} 2`,
      `operations_count${labels("get", more)} 1`,
      ...corrupt,
    ]);
  }
});

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const trace = { traceId: TRACE, spanId: SPAN };
const call = { trace } as object;

interface Item extends Doc {
  readonly _id: number;
  readonly name: string;
  readonly trace?: StoredRecord["trace"];
}
const ITEMS = schema<Item>()("items", { name: ["name"] }, undefined, ({ name }) => ({ name }), [], traceparentOf);
const PLAIN = schema<Item>()("plain", { name: ["name"] });

async function open() {
  const { tracing, spans } = recordedTracing();
  const { store } = start(openMemory(), tracing);
  return { store, spans, items: await store.collection(ITEMS), plain: await store.collection(PLAIN) };
}
const named = (name: string) => () => put({ _id: 1, name }, name);

test("every operation of a recorded trace is a span of its call", async () => {
  const { store, items, spans } = await open();
  expect(await store.nextId("item", call)).toBe(1);
  expect(await items.update(1, named("a"), call)).toBe("a");
  expect(await items.get(1, call)).toMatchObject({ name: "a" });
  expect(await items.getMany([1], call)).toHaveLength(1);
  expect(await items.list({ where: { name: "a" }, limit: 1, order: "asc" }, call)).toHaveLength(1);
  expect(await items.listByPrefix({ field: "name", prefix: "a", limit: 1 }, call)).toHaveLength(1);
  await items.remove(1, () => true, call);
  expect(await items.get(1)).toBeUndefined();
  const operations = [
    "nextId item",
    ...["update", "get", "getMany", "list", "listByPrefix", "remove"].map((one) => `${one} items`),
  ];
  expect(spans().map(({ name }) => name)).toEqual(operations);
  expect(spans()).toMatchObject(operations.map(() => ({ kind: "client", traceId: TRACE, parentId: SPAN })));
  expect(spans()[1]?.attributes).toEqual({
    "db.system.name": "sqlite",
    "db.collection.name": "items",
    "db.operation.name": "update",
  });
});

test("a rule that refuses is no failure of the store, a store that does not answer is one", async () => {
  const { items, spans } = await open();
  const throwing = (error: Error) => () => {
    throw error;
  };
  await expect(items.update(1, throwing(new Error("refused")), call)).rejects.toThrow("refused");
  await expect(items.update(1, throwing(new Unavailable(false)), call)).rejects.toThrow(Unavailable);
  expect(spans()).toMatchObject([
    { hasFailed: false },
    { hasFailed: true, attributes: { "error.type": "Unavailable" } },
  ]);
});

describe("a record has the trace of the write that made its revision", () => {
  const stored = async (first: object, second: object) => {
    const { items } = await open();
    await items.update(1, named("a"), first);
    await items.update(1, (doc) => put({ ...(doc as Item), name: "b" }, undefined), second);
    return (await items.get(1)) as Item;
  };
  test.each([
    ["recorded", {}, call, `00-${TRACE}-${SPAN}-01`],
    ["not of an earlier one", call, {}, undefined],
  ])("%s", async (_, first, second, traceparent) => {
    const doc = await stored(first, second);
    expect(traceparentOf(doc)).toBe(traceparent);
    expect(traceOf(doc)?.traceId).toBe(traceparent && TRACE);
  });
  test("and its event names that trace, not an earlier one", async () => {
    const { items } = await open();
    const changes = await items.changes({ signal: AbortSignal.timeout(60_000) });
    await items.update(1, named("a"), call);
    await items.update(1, (doc) => put({ ...(doc as Item), name: "b" }, undefined));
    const noted: unknown[] = [];
    for await (const batch of changes) {
      noted.push(...batch.map((change) => ("noted" in change ? change.noted : "nothing")));
      if (noted.length === 2) break;
    }
    expect(noted).toEqual([`00-${TRACE}-${SPAN}-01`, "nothing"]);
  });
  test("not in collections that no event tells of", async () => {
    const { plain } = await open();
    await plain.update(1, named("a"), call);
    expect(await plain.get(1)).toEqual({ _id: 1, rev: 1, name: "a" });
  });
});
