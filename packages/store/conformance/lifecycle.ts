/** Opening, closing, opening again. */
import { expect } from "vitest";
import { put, schema, Unavailable } from "../port.ts";
import { type Bench, idsOf, isAt, it, NOTES, type OpenSubject, PETS, type Pet, range, save, wrong } from "./subject.ts";

const reopenPets = async ({ reopen }: Bench) => (await reopen()).collection(PETS);

export function lifecycle(open: OpenSubject): void {
  it(open, "a store that can be used answers a ping", async ({ store }) => {
    await expect(store.ping()).resolves.toBeUndefined();
  });

  it(open, "opened again it has everything: documents, lists, sequences", async (bench) => {
    await Promise.all(range(50, 1).map((id) => save(bench.pets, { _id: id, name: `n${id}`, flag: id % 2 === 0 })));
    await save(bench.pets, { _id: 1, name: "Rex" });
    await bench.pets.remove(2, isAt(1));
    const ids = await Promise.all(range(20).map(() => bench.store.nextId("pets")));

    const again = await bench.reopen();
    const pets = await again.collection(PETS);
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Rex", rev: 2 });
    expect(await pets.get(2)).toBeUndefined();
    const even = await pets.list({ where: { flag: true }, limit: 99, order: "asc" });
    expect(idsOf(even)).toEqual(range(24, 2).map((i) => 2 * i));
    const more = await Promise.all(range(20).map(() => again.nextId("pets")));
    expect(new Set([...ids, ...more]).size).toBe(40);
    expect(Math.min(...more)).toBeGreaterThan(Math.max(...ids));
    expect(await pets.update(1, (doc, rev) => put({ _id: 1, name: "Max" }, [doc?.rev, rev]))).toEqual([2, 3]);
  });

  it(open, "a sequence that went on above a number does so when it is opened again", async (bench) => {
    expect(await bench.store.nextId("pets")).toBe(1);
    const given = await bench.store.nextId("pets", { above: 1_000 });
    const again = await bench.reopen();
    expect(await again.nextId("pets")).toBeGreaterThan(given);
    expect(await again.nextId("pets", { above: 500 })).toBeGreaterThan(given + 1);
  });

  it(open, "an index that is declared later knows the documents of before", async (bench) => {
    await Promise.all(range(30, 1).map((id) => save(bench.pets, { _id: id, name: "Rex", stock: id % 3 })));
    await save(bench.pets, { _id: 31, name: "Rex" });
    const more = schema<Pet>()("pets", { ...PETS.indexes, stock: ["stock"], both: ["name", "stock"] });
    const pets = await (await bench.reopen()).collection(more);
    const threes = range(10, 1).map((i) => 3 * i);
    expect(idsOf(await pets.list({ where: { stock: 0 }, limit: 99, order: "asc" }))).toEqual(threes);
    expect(idsOf(await pets.list({ where: { stock: 0, name: "Rex" }, limit: 99, order: "asc" }))).toEqual(threes);
    expect(await pets.list({ where: { stock: [0, 1, 2] }, limit: 99, order: "asc" })).toHaveLength(30);
  });

  it(open, "an index that was away for a while has missed nothing", async (bench) => {
    await save(bench.pets, { _id: 1, name: "Rex", flag: true });
    const fewer = await (await bench.reopen()).collection(schema<Pet>()("pets", { name: PETS.indexes.name }));
    await save(fewer, { _id: 1, name: "Rex", flag: false });
    await save(fewer, { _id: 2, name: "Rex", flag: true });
    await expect(fewer.list({ where: wrong({ flag: true }), limit: 9, order: "asc" })).rejects.toThrow(TypeError);
    const pets = await reopenPets(bench);
    expect(idsOf(await pets.list({ where: { flag: true }, limit: 9, order: "asc" }))).toEqual([2]);
    expect(idsOf(await pets.list({ where: { flag: false }, limit: 9, order: "asc" }))).toEqual([1]);
  });

  it(open, "an index may change its fields under the same name", async (bench) => {
    await save(bench.pets, { _id: 1, name: "Rex", categoryId: 7 });
    const changed = schema<Pet>()("pets", { shelf: ["name", "categoryId"] });
    const pets = await (await bench.reopen()).collection(changed);
    const where = { name: "Rex", categoryId: 7 };
    expect(idsOf(await pets.list({ where, limit: 9, order: "asc" }))).toEqual([1]);
  });

  it(open, "a collection asked for again is the same, with other indexes a TypeError", async ({ store, pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    expect(await (await store.collection(PETS)).get(1)).toMatchObject({ name: "Rex" });
    await expect(store.collection(schema<Pet>()("pets", { name: ["name"] }))).rejects.toThrow(TypeError);
    expect(await pets.list({ where: { flag: true }, limit: 1, order: "asc" })).toEqual([]);
  });

  it(open, "what can't be a collection is a TypeError", async ({ store }) => {
    for (const name of ["", "$x", "a b", "a.b", "1a"]) {
      await expect(store.collection(schema<Pet>()(name, {}))).rejects.toThrow(TypeError);
    }
    await expect(store.collection(schema<Pet>()("empty", { none: [] }))).rejects.toThrow(TypeError);
    await expect(store.collection(schema<Pet>()("twice", { same: ["name", "name"] }))).rejects.toThrow(TypeError);
  });

  it(open, "close waits for what is under way", async (bench) => {
    await save(bench.pets, { _id: 0, name: "Rex" });
    const writes = range(100, 1).map((id) => save(bench.pets, { _id: id, name: "Rex" }));
    const read = bench.pets.get(0);
    await bench.store.close();
    expect(await Promise.all(writes)).toEqual(range(100).map(() => 1));
    expect((await read)?._id).toBe(0);
    expect(await (await reopenPets(bench)).list({ limit: 999, order: "asc" })).toHaveLength(101);
  });

  it(open, "after close everything is Unavailable, not in doubt; closing again is fine", async ({ store, pets }) => {
    await store.close();
    for (const call of [
      () => pets.get(1),
      () => pets.getMany([1]),
      () => pets.list({ limit: 1, order: "asc" }),
      () => save(pets, { _id: 1, name: "Rex" }),
      () => pets.remove(1, isAt(1)),
      () => store.nextId("pets"),
      () => store.ping(),
      () => store.collection(schema<Pet>()("late", {})),
    ]) {
      const error = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Unavailable);
      expect(error).toMatchObject({ inDoubt: false });
    }
    await store.close();
  });

  it(open, "strings and numbers as ids both survive", async (bench) => {
    await save(bench.notes, { _id: "007", text: "bond" });
    const notes = await (await bench.reopen()).collection(NOTES);
    expect(await notes.get("007")).toEqual({ _id: "007", text: "bond", rev: 1 });
    expect(idsOf(await notes.list({ where: { text: "bond" }, limit: 9, order: "asc" }))).toEqual(["007"]);
  });
}
