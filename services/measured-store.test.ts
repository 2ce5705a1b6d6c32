import { counter, histogram } from "@petstore/metrics/declaration";
import { createRegistry } from "@petstore/metrics/registry";
import { openMemory } from "@petstore/store/memory";
import { Corrupt, type Doc, Overloaded, put, type Store, schema } from "@petstore/store/port";
import { expect, test } from "vitest";
import { measured } from "./measured-store.ts";

interface Pet extends Doc {
  readonly name: string;
}
const PETS = schema<Pet>()("pets", { name: ["name"] });
const OPERATIONS = histogram("operations", "", ["system", "namespace", "collection", "operation", "error"], [1]);
const CORRUPT = counter("corrupt", "", ["collection"]);

function start(store: Store = openMemory()) {
  const registry = createRegistry(() => 0);
  let time = 0;
  const now = () => (time += 2_000);
  const metrics = { operations: registry.histogram(OPERATIONS), corrupt: registry.counter(CORRUPT), now };
  const lines = () =>
    registry
      .text("plain")
      .split("\n")
      .filter((line) => /_(sum|count)|^corrupt/.test(line));
  return { store: measured(store, { system: "sqlite", namespace: "pet" }, metrics), lines };
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
