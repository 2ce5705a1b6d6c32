/** A change is a pure function from the stored document to its successor. */
import { expect } from "vitest";
import { keep, put } from "../port.ts";
import { it, type OpenSubject, save, wrong } from "./subject.ts";

export function updates(open: OpenSubject): void {
  it(open, "decide sees what is stored and the revision to come; update answers its result", async ({ pets }) => {
    expect(await pets.update(1, (doc, rev) => put({ _id: 1, name: "Rex" }, [doc, rev]))).toEqual([undefined, 1]);
    const seen = await pets.update(1, (doc, rev) => put({ _id: 1, name: "Max" }, [doc, rev]));
    expect(seen).toEqual([{ _id: 1, name: "Rex", rev: 1 }, 2]);
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Max", rev: 2 });
  });

  it(open, "a revision in the draft does not count", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex", ...{ rev: 7 } });
    await pets.update(1, (doc) => put({ ...doc, _id: 1, name: "Max" }, 0));
    expect((await pets.get(1))?.rev).toBe(2);
  });

  it(open, "keep changes nothing, on a document and without one", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    expect(await pets.update(1, (doc) => keep(doc?.name))).toBe("Rex");
    expect(await pets.update(2, (doc) => keep(doc))).toBeUndefined();
    expect(await pets.list({ limit: 9, order: "asc" })).toEqual([{ _id: 1, name: "Rex", rev: 1 }]);
  });

  it(open, "what decide throws is what update rejects with, and nothing is stored", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    const refusal = new Error("not today");
    const refuse = () => {
      throw refusal;
    };
    const outcomes = await Promise.allSettled([
      pets.update(1, (doc) => put({ _id: 1, name: `${doc?.name}!` }, 0)),
      pets.update(1, refuse),
      pets.update(1, (doc) => put({ _id: 1, name: `${doc?.name}?` }, 0)),
      pets.update(2, refuse),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
    expect(outcomes[1]).toMatchObject({ reason: refusal });
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Rex!?", rev: 3 });
    expect(await pets.get(2)).toBeUndefined();
  });

  it(open, "a refused successor does no harm to its neighbours", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex", stock: 0 });
    const add = () => pets.update(1, (doc) => put({ _id: 1, name: "Rex", stock: (doc?.stock ?? 0) + 1 }, 0));
    const outcomes = await Promise.allSettled([add(), save(pets, { _id: 1, name: "Rex", extra: 1n }), add()]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Rex", stock: 2, rev: 3 });
  });

  it(open, "a successor with another _id, or without one, is a TypeError", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    for (const other of [2, "1", undefined].map(wrong)) {
      await expect(pets.update(1, () => put({ _id: other, name: "Max" }, 0))).rejects.toThrow(TypeError);
    }
    expect(await pets.list({ limit: 9, order: "asc" })).toEqual([{ _id: 1, name: "Rex", rev: 1 }]);
  });

  it(open, "a field that begins like an engine's own is a TypeError", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    for (const field of ["_operations", "_", "__proto__"]) {
      const draft = JSON.parse(`{"_id": 1, "name": "Max", "${field}": 1}`);
      await expect(pets.update(1, () => put(draft, 0))).rejects.toThrow(TypeError);
    }
    expect(await pets.list({ limit: 9, order: "asc" })).toEqual([{ _id: 1, name: "Rex", rev: 1 }]);
  });

  it(open, "a decision that is none, such as a promise, is a TypeError that says so", async ({ pets }) => {
    const none = [async () => put({ _id: 1, name: "Rex" }, 0), () => ({ action: "drop", doc: { _id: 1 } })];
    for (const decide of none.map(wrong)) await expect(pets.update(1, decide)).rejects.toThrow(/keep.* or put/);
    expect(await pets.get(1)).toBeUndefined();
  });

  it(open, "a successor may share what is stored, and its result may too", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex", extra: { tags: ["a"] } });
    const tags = await pets.update(1, (doc) => put({ ...doc, _id: 1, name: "Max" }, doc?.extra));
    expect(tags).toEqual({ tags: ["a"] });
    expect(await pets.get(1)).toEqual({ _id: 1, name: "Max", extra: { tags: ["a"] }, rev: 2 });
  });

  it(open, "updates of one tick can't change what the others of them see", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex", extra: ["a"] });
    const own = { _id: 1, name: "Max", extra: ["b"] };
    const change = (doc: unknown) => (doc as { extra: string[] }).extra.push("c");
    const outcomes = await Promise.allSettled([
      pets.update(1, (doc) => keep(change(doc))),
      pets.update(1, (doc) => put(own, doc?.extra)),
      pets.update(1, (doc) => keep(change(doc))),
      pets.update(1, (doc) => {
        change(own);
        return keep(doc?.extra);
      }),
    ]);
    const refused = { status: "rejected", reason: expect.any(TypeError) };
    expect(outcomes).toEqual([refused, { status: "fulfilled", value: ["a"] }, refused, expect.anything()]);
    expect(outcomes[3]).toEqual({ status: "fulfilled", value: ["b"] });
  });

  it(open, "an answered write is seen by every read that starts later", async ({ pets }) => {
    for (const id of [1, 2, 3]) {
      await save(pets, { _id: id, name: "Rex" });
      expect((await pets.get(id))?.rev).toBe(1);
      expect(await pets.getMany([id])).toHaveLength(1);
      expect(await pets.list({ where: { name: "Rex" }, limit: 9, order: "asc" })).toHaveLength(id);
    }
  });
}
