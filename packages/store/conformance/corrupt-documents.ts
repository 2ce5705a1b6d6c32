/** Documents that the petstore can't have written, or that only a newer one writes. */
import { expect } from "vitest";
import * as s from "../document-schema.ts";
import { Corrupt, put, schema } from "../port.ts";
import { type Bench, idsOf, it, type OpenSubject, PETS, type Pet, range, save } from "./subject.ts";

/** Validates a few fields of pets. */
const document = s.object({ _id: s.int, rev: s.int, name: s.string, stock: s.int.optional });
const JUDGED = schema<Pet>()("pets", PETS.indexes, document);

const stocked = (id: number) => ({ _id: id, name: "Rex", flag: true, stock: 1 });
const spoiled: readonly (readonly [string, object])[] = [
  ["no revision", { rev: undefined }],
  ["a revision that is no integer", { rev: 1.5 }],
  ["a revision that is a text", { rev: "1" }],
  ["a field of another type", { stock: "many" }],
  ["null in place of a value", { name: null }],
  ["no field that there must be", { name: undefined }],
];

/** Stores pets 1 to `count`, spoils some of them, and reopens the collection with a schema that validates what is read. */
async function withPoison(bench: Bench, count: number, ids: readonly number[], change: object) {
  await Promise.all(range(count, 1).map((id) => save(bench.pets, stocked(id))));
  await bench.spoil(
    "pets",
    ids.map((id) => ({ ...stocked(id), rev: 1, ...change })),
  );
  return (await bench.reopen()).collection(JUDGED);
}

export function corruptDocuments(open: OpenSubject): void {
  for (const [what, change] of spoiled) {
    it(open, `a document with ${what} is refused by name to whoever asks for it`, async (bench) => {
      const pets = await withPoison(bench, 3, [2], change);
      const calls = [
        () => pets.get(2),
        () => pets.update(2, () => put(stocked(2), 0)),
        () => pets.remove(2, () => true),
      ];
      for (const call of calls) {
        const error = await call().catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(Corrupt);
        expect((error as Error).message).toMatch(/Document 2 of pets/);
      }
      await expect(pets.get(2)).rejects.toThrow(Corrupt);
    });

    it(open, `and everything else goes on without a document with ${what}`, async (bench) => {
      const pets = await withPoison(bench, 5, [2, 5], change);
      expect(idsOf(await pets.getMany([5, 4, 2, 1]))).toEqual([4, 1]);
      expect(idsOf(await pets.list({ limit: 9, order: "asc" }))).toEqual([1, 3, 4]);
      expect(idsOf(await pets.list({ where: { flag: true }, limit: 9, order: "desc" }))).toEqual([4, 3, 1]);
      expect(await pets.update(3, (_, rev) => put(stocked(3), rev))).toBe(2);
    });
  }

  it(open, "a page is full although documents are left out, also at its beginning", async (bench) => {
    const pets = await withPoison(bench, 12, [1, 2, 3, 6, 12, 11], { stock: "many" });
    const where = { flag: true };
    expect(idsOf(await pets.list({ where, limit: 1, order: "asc" }))).toEqual([4]);
    expect(idsOf(await pets.list({ where, after: 4, limit: 2, order: "asc" }))).toEqual([5, 7]);
    expect(idsOf(await pets.list({ where, limit: 2, order: "desc" }))).toEqual([10, 9]);
    expect(idsOf(await pets.list({ where, after: 4, limit: 2, order: "desc" }))).toEqual([]);
    const byName = { field: "name", prefix: "R", limit: 2 } as const;
    expect(idsOf(await pets.listByPrefix(byName))).toEqual([4, 5]);
    expect(idsOf(await pets.listByPrefix({ ...byName, after: { key: "Rex", _id: 5 } }))).toEqual([7, 8]);
  });

  it(open, "who asks strictly is told instead", async (bench) => {
    const pets = await withPoison(bench, 3, [2], { stock: "many" });
    const strict = { order: "asc", strict: true } as const;
    await expect(pets.list({ where: { flag: true }, limit: 9, ...strict })).rejects.toThrow(Corrupt);
    expect(idsOf(await pets.list({ where: { flag: true }, limit: 1, ...strict }))).toEqual([1]);
  });

  it(open, "where hardly anything can be read, a list says so instead of reading it all", async (bench) => {
    const pets = await withPoison(bench, 1010, range(1005, 1), { stock: "many" });
    await expect(pets.list({ limit: 2, order: "asc" })).rejects.toThrow(Corrupt);
    expect(idsOf(await pets.list({ after: 10, limit: 2, order: "asc" }))).toEqual([1006, 1007]);
  });

  it(open, "a new index holds all other documents", async (bench) => {
    await withPoison(bench, 3, [2], { stock: {} });
    const more = schema<Pet>()("pets", { both: ["rev", "stock"], stock: ["stock"] }, document);
    const pets = await (await bench.reopen()).collection(more);
    for (const where of [{ stock: 1 }, { stock: 1, rev: 1 }])
      expect(idsOf(await pets.list({ where, limit: 9, order: "asc" }))).toEqual([1, 3]);
  });
}
