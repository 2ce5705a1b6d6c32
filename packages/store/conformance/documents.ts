/** Reading and removing single documents. */
import { expect } from "vitest";
import { keep, put, Unavailable } from "../port.ts";
import { idsOf, isAt, it, type OpenSubject, range, save, wrong } from "./subject.ts";

const all = { limit: 9, order: "asc" } as const;
const tagsOf = (doc: unknown) => (doc as { extra: { tags: string[] } }).extra.tags;

export function documents(open: OpenSubject): void {
  it(open, "get answers what was put, with revision 1 at first", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Rex", rev: 1 });
  });

  it(open, "get of a missing document answers undefined", async ({ pets }) => {
    expect(await pets.get(1)).toBeUndefined();
  });

  it(open, "collections are apart", async ({ pets, notes }) => {
    await save(pets, { _id: 1, name: "Rex" });
    await save(notes, { _id: "1" });
    expect(await pets.list({ limit: 9, order: "asc" })).toHaveLength(1);
    expect(await notes.list({ limit: 9, order: "asc" })).toEqual([{ _id: "1", rev: 1 }]);
  });

  it(open, "getMany keeps the order asked, leaves out the missing, answers a repeated id once", async ({ pets }) => {
    for (const id of [1, 2, 5]) await save(pets, { _id: id, name: `n${id}` });
    expect(idsOf(await pets.getMany([5, 999, 1, 5, 1]))).toEqual([5, 1]);
    expect(await pets.getMany([])).toEqual([]);
  });

  it(open, "many reads in one tick get their own answers", async ({ pets }) => {
    for (const id of [1, 2, 4]) await save(pets, { _id: id, name: `n${id}` });
    const found = await Promise.all([1, 2, 1, 3, 4, ...range(500, 1000)].map((id) => pets.get(id)));
    expect(found.slice(0, 5).map((doc) => doc?._id)).toEqual([1, 2, 1, undefined, 4]);
    expect(found.slice(5).every((doc) => doc === undefined)).toBe(true);
  });

  it(open, "documents go in as copies, and what comes out can't be changed", async ({ pets }) => {
    const draft = { _id: 1, name: "Rex", extra: { tags: ["a"] } };
    await save(pets, draft);
    draft.extra.tags.push("in");
    expect(tagsOf(await pets.get(1))).toEqual(["a"]);

    const decided = await pets.update(1, (doc) => keep(doc));
    const [got, [ofMany], [listed]] = [await pets.get(1), await pets.getMany([1]), await pets.list(all)];
    for (const doc of [decided, got, ofMany, listed]) {
      expect(() => tagsOf(doc).push("out")).toThrow(TypeError);
      expect(() => Object.assign(doc as object, { name: "Max" })).toThrow(TypeError);
    }
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Rex", extra: { tags: ["a"] }, rev: 1 });
  });

  it(open, "many who read the same at the same time each get all of it", async ({ pets }) => {
    for (const id of [1, 2, 3]) await save(pets, { _id: id, name: `n${id}`, flag: true });
    const lists = await Promise.all(range(50).map(() => pets.list({ where: { flag: true }, limit: 2, order: "desc" })));
    expect(new Set(lists).size).toBe(50);
    for (const list of lists) expect(idsOf(list)).toEqual([3, 2]);
    for (const many of await Promise.all(range(50).map(() => pets.getMany([3, 1]))))
      expect(idsOf(many)).toEqual([3, 1]);
  });

  it(open, "remove takes the document away, and it may come back at revision 1", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex", flag: true });
    await save(pets, { _id: 1, name: "Max", flag: true });
    await pets.remove(1, isAt(2));
    expect(await pets.get(1)).toBeUndefined();
    expect(await pets.list({ where: { flag: true }, limit: 9, order: "asc" })).toEqual([]);
    expect(await pets.update(1, (doc, rev) => put({ _id: 1, name: "Rex" }, [doc, rev]))).toEqual([undefined, 1]);
  });

  it(open, "remove leaves a document that has moved on, and one that is not there", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    await save(pets, { _id: 1, name: "Max" });
    await pets.remove(1, isAt(1));
    await pets.remove(1, isAt(3));
    await pets.remove(2, isAt(1));
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Max", rev: 2 });
  });

  it(open, "remove judges what is stored, not what was seen before", async ({ pets }) => {
    await save(pets, { _id: 1, name: "old" });
    const [seen] = await pets.list({ limit: 1, order: "asc" });
    await pets.remove(1, isAt(1));
    await save(pets, { _id: 1, name: "new" });
    expect((await pets.get(1))?.rev).toBe(seen?.rev);
    const judged: unknown[] = [];
    await pets.remove(1, (doc) => judged.push(doc) > 0 && doc.name === "old");
    await pets.remove(2, (doc) => judged.push(doc) > 0);
    expect(judged).toEqual([{ _id: 1, name: "new", rev: 1 }]);
    expect(await pets.get(1)).toEqual({ _id: 1, name: "new", rev: 1 });
  });

  it(open, "what is no _id is a TypeError everywhere, and nothing happens", async ({ pets }) => {
    for (const id of ["", "\ud800", 1.5, 2 ** 53, Number.NaN, null, undefined, {}, true, 1n].map(wrong)) {
      await expect(pets.get(id)).rejects.toThrow(TypeError);
      await expect(pets.getMany([1, id])).rejects.toThrow(TypeError);
      await expect(pets.list({ after: id ?? Number.NaN, limit: 1, order: "asc" })).rejects.toThrow(TypeError);
      await expect(pets.update(id, () => put({ _id: id, name: "Rex" }, 0))).rejects.toThrow(TypeError);
      await expect(pets.remove(id, isAt(1))).rejects.toThrow(TypeError);
    }
    expect(await pets.list({ limit: 9, order: "asc" })).toEqual([]);
  });

  it(open, "what no number can follow is a TypeError for a sequence, and nothing happens", async ({ store }) => {
    for (const above of [1.5, 2 ** 53 - 1, Number.NaN, Number.POSITIVE_INFINITY, "1", 1n].map(wrong))
      await expect(store.nextId("pets", { above })).rejects.toThrow(TypeError);
    expect(await store.nextId("pets")).toBe(1);
  });

  it(open, "a deadline that has passed is Unavailable, not in doubt, and nothing is written", async (bench) => {
    const { pets, store, setTime } = bench;
    await save(pets, { _id: 1, name: "Rex" });
    setTime(5000);
    const late = { deadline: 5000 };
    const decided: unknown[] = [];
    for (const call of [
      () => pets.get(1, late),
      () => pets.getMany([1], late),
      () => pets.list({ limit: 1, order: "asc" }, late),
      () => pets.update(1, (doc) => put({ _id: 1, name: "Max" }, decided.push(doc)), late),
      () => pets.remove(1, isAt(1), late),
      () => store.nextId("late", late),
      () => store.ping(late),
    ]) {
      const error = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Unavailable);
      expect(error).toMatchObject({ inDoubt: false });
    }
    expect(decided).toEqual([]);
    expect(await pets.get(1, { deadline: 5001 + 60_000 })).toEqual({ _id: 1, name: "Rex", rev: 1 });
    expect(await store.nextId("late")).toBe(1);
  });
}
