/** Concurrent calls. */
import { expect } from "vitest";
import { MAX_PER_DOCUMENT } from "../engine/admission.ts";
import { keep, Overloaded, put } from "../port.ts";
import { type Bench, isAt, it, type OpenSubject, range, save } from "./subject.ts";

const add = ({ pets }: Bench, id: number) =>
  pets.update(id, (doc, rev) => put({ _id: id, name: "Rex", stock: (doc?.stock ?? 0) + 1 }, rev));

export function concurrency(open: OpenSubject): void {
  it(open, "1000 increments of one document all count, each with a revision of its own", async (bench) => {
    const revs = await Promise.all(range(1000).map(() => add(bench, 1)));
    expect(revs.toSorted((a, b) => a - b)).toEqual(range(1000, 1));
    expect(await bench.pets.get(1)).toMatchObject({ stock: 1000, rev: 1000 });
  });

  it(open, "increments of interleaved documents keep apart", async (bench) => {
    await Promise.all(range(1000).map((i) => add(bench, i % 10)));
    const docs = await bench.pets.getMany(range(10));
    expect(docs.map((doc) => [doc.stock, doc.rev])).toEqual(range(10).map(() => [100, 100]));
  });

  it(open, "200 who take from a stock of 100: exactly 100 get one", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex", stock: 100 });
    const take = () =>
      pets.update(1, (doc) =>
        doc?.stock ? put({ ...doc, stock: doc.stock - 1 }, doc.stock) : keep<number | undefined>(undefined),
      );
    const taken = (await Promise.all(range(200).map(take))).filter((unit) => unit !== undefined);
    expect(taken.toSorted((a, b) => a - b)).toEqual(range(100, 1));
    expect(await pets.get(1)).toMatchObject({ stock: 0, rev: 101 });
  });

  it(open, "100 inserts of one _id: one wins", async ({ pets }) => {
    const insert = (name: string) =>
      pets.update(1, (doc) => (doc === undefined ? put({ _id: 1, name }, true) : keep(false)));
    const won = await Promise.all(range(100).map((i) => insert(`n${i}`)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await pets.get(1)).toEqual({ _id: 1, name: `n${won.indexOf(true)}`, rev: 1 });
  });

  it(open, "removes at one revision among updates: the document goes at most once", async (bench) => {
    await save(bench.pets, { _id: 1, name: "Rex", stock: 0 });
    await Promise.all(range(60).map((i) => (i % 10 === 0 ? bench.pets.remove(1, isAt(1)) : add(bench, 1))));
    const doc = await bench.pets.get(1);
    expect(doc?.rev).toBeGreaterThan(0);
    // If it was kept, all 54 increments follow its first revision; if it was removed, only those after the removal count.
    expect(doc?.stock).toBe(doc?.rev === 55 ? 54 : doc?.rev);
  });

  it(open, "reads never go back while writes go on", async (bench) => {
    await save(bench.pets, { _id: 1, name: "Rex", stock: 0, flag: true });
    const seen: number[] = [];
    const read = async () => {
      for (let i = 0; i < 50; i++) {
        seen.push((await bench.pets.get(1))?.stock ?? -1);
        const [listed] = await bench.pets.list({ where: { name: "Rex" }, limit: 1, order: "asc" });
        seen.push(listed?.stock ?? -1);
      }
    };
    const write = async () => {
      for (let i = 0; i < 100; i++) await add(bench, 1);
    };
    await Promise.all([read(), write(), write()]);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen).not.toContain(-1);
    expect((await bench.pets.get(1))?.stock).toBe(200);
  });

  it(open, "a sequence gives 1, 2, 3, apart from other sequences, and no number twice", async ({ store }) => {
    expect([await store.nextId("pets"), await store.nextId("pets"), await store.nextId("orders")]).toEqual([1, 2, 1]);
    const ids = await Promise.all(range(500).map(() => store.nextId("pets")));
    expect(new Set(ids).size).toBe(500);
    expect(Math.min(...ids)).toBeGreaterThan(2);
  });

  it(open, "a sequence goes on above a number that is in use, for all who ask, and never back", async ({ store }) => {
    expect(await store.nextId("pets", { above: 0 })).toBe(1);
    expect(await store.nextId("pets", { above: 10 })).toBe(11);
    expect(await store.nextId("pets")).toBe(12);
    expect(await store.nextId("pets", { above: 5 })).toBe(13);
    expect(await store.nextId("orders")).toBe(1);
    const above = [0, 100, 0, 40, 100, 200];
    const given = await Promise.all(above.map((above) => store.nextId("pets", { above })));
    for (const [i, number] of given.entries()) expect(number).toBeGreaterThan(Math.max(13, above[i] ?? 0));
    given.push(await store.nextId("pets"), await store.nextId("pets", { above: 13 }));
    expect(new Set(given).size).toBe(above.length + 2);
    expect(Math.min(...given.slice(-2))).toBeGreaterThan(200);
  });

  it(
    open,
    "more changes of one document than can wait: some are refused, without effect; all others count",
    async (bench) => {
      const asked = 2 * MAX_PER_DOCUMENT;
      const outcomes = await Promise.allSettled([...range(asked).map(() => add(bench, 1)), add(bench, 2)]);
      const done = outcomes.slice(0, asked).filter(({ status }) => status === "fulfilled").length;
      const refused = outcomes.filter((outcome) => outcome.status === "rejected");
      expect(done).toBeGreaterThanOrEqual(MAX_PER_DOCUMENT);
      expect(refused.every(({ reason }) => reason instanceof Overloaded && !reason.inDoubt)).toBe(true);
      expect(done + refused.length).toBe(asked);
      expect(await bench.pets.get(1)).toMatchObject({ stock: done, rev: done });
      expect(await bench.pets.get(2)).toMatchObject({ stock: 1 });
      await add(bench, 1);
      expect(await bench.pets.get(1)).toMatchObject({ stock: done + 1 });
    },
  );
}
