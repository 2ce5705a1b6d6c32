import { type Doc, put, schema, Unavailable } from "@petstore/store/port";
import { describe, expect, test } from "vitest";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { recordedTracing } from "../../packages/trace/fixtures/recorded.ts";
import type { StoredRecord } from "./record.ts";
import { tracedStore, traceOf, traceparentOf } from "./traced-store.ts";

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
  const store = tracedStore(openMemory(), tracing, "sqlite");
  return { store, spans, items: await store.collection(ITEMS), plain: await store.collection(PLAIN) };
}
const named = (name: string) => () => put({ _id: 1, name }, name);

test("without traces it is the store itself", () => {
  const store = openMemory();
  expect(tracedStore(store, undefined, "sqlite")).toBe(store);
});

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
