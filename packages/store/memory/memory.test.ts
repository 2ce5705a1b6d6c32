import { serialize } from "bson";
import { expect, test } from "vitest";
import { conformance } from "../conformance/suite.ts";
import { type Id, keep, put, schema } from "../port.ts";
import { emptyData, openMemory } from "./memory.ts";

conformance("the memory engine", async (clock) => {
  const data = emptyData();
  let store = openMemory({ data, clock });
  return {
    store,
    async reopen() {
      await store.close();
      store = openMemory({ data, clock });
      return store;
    },
    async spoil(collection, docs) {
      await store.close();
      for (const doc of docs) data.collections.get(collection)?.set(doc._id as Id, serialize(doc));
    },
    end: () => store.close(),
  };
});

test("a decide that changes what it was given is found out", async () => {
  const pets = await openMemory().collection(schema<{ _id: number; rev: number; tags: string[] }>()("pets", {}));
  await pets.update(1, () => put({ _id: 1, tags: ["a"] }, 0));
  await expect(pets.update(1, (doc) => keep(doc?.tags.push("b")))).rejects.toThrow(TypeError);
});
