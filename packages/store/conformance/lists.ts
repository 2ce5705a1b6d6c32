/** Lists by index: which documents, in which order, page by page. */
import { expect } from "vitest";
import { type ListQuery, put, type Where } from "../port.ts";
import { type Bench, idsOf, isAt, it, type OpenSubject, type PETS, type Pet, range, save, wrong } from "./subject.ts";

const STATUSES = ["available", "pending", "sold"] as const;
type PetQuery = ListQuery<Where<Pet, typeof PETS.indexes>>;

/** 200 pets over 4 categories, 3 statuses and a flag; every tenth has no status, and so is in no shelf. */
const stocked = (id: number) => ({
  _id: id,
  name: `n${id}`,
  categoryId: id % 4,
  flag: id % 2 === 0,
  ...(id % 10 === 0 ? {} : { status: STATUSES[id % 3] ?? "sold" }),
});
const stock = ({ pets }: Bench) => Promise.all(range(200, 1).map((id) => save(pets, stocked(id))));

async function walk({ pets }: Bench, query: PetQuery): Promise<number[]> {
  const seen: number[] = [];
  for (let after = query.after; ; after = seen.at(-1)) {
    const page = await pets.list({ ...query, after });
    seen.push(...idsOf(page).map(Number));
    if (page.length < query.limit) return seen;
  }
}

export function lists(open: OpenSubject): void {
  it(open, "any value of each field, in both orders, page by page", async (bench) => {
    await stock(bench);
    const shelves = [
      { categoryId: 1, status: "sold" },
      { categoryId: 1, status: ["sold", "available"] },
      { categoryId: [1, 3], status: ["sold", "pending"] },
      { categoryId: [0, 1, 2, 3], status: STATUSES },
      { categoryId: [1, 1], status: ["sold", "sold"] },
      { categoryId: 999, status: "sold" },
      { categoryId: 1, status: [] },
      { categoryId: range(150), status: STATUSES },
    ] as const;
    for (const shelf of shelves) {
      const isIn = (id: number) => {
        const { categoryId, status } = stocked(id);
        const [categories, statuses] = [[shelf.categoryId].flat(), [shelf.status].flat()];
        return status !== undefined && categories.includes(categoryId) && statuses.includes(status);
      };
      const expected = range(200, 1).filter(isIn);
      expect(await walk(bench, { where: shelf, limit: 7, order: "asc" })).toEqual(expected);
      expect(await walk(bench, { where: shelf, limit: 7, order: "desc" })).toEqual(expected.reverse());
    }
  });

  it(open, "any number at once: each as if it were alone", async (bench) => {
    await stock(bench);
    const { pets } = bench;
    const wheres = [
      undefined,
      ...[true, false].map((flag) => ({ flag })),
      ...range(5).flatMap((categoryId) => STATUSES.map((status) => ({ categoryId, status }))),
      { categoryId: [0, 1], status: "sold" } as const,
      { categoryId: 1, status: [] },
    ];
    const queries = wheres.flatMap((where) =>
      (["asc", "desc"] as const).flatMap((order) =>
        [1, 7, 100, 101].flatMap((limit): PetQuery[] => [
          { ...(where && { where }), order, limit },
          { ...(where && { where }), order, limit, after: 77 },
        ]),
      ),
    );
    const alone: number[][] = [];
    for (const query of queries) alone.push(idsOf(await pets.list(query)).map(Number));
    const together = await Promise.all(queries.map((query) => pets.list(query)));
    expect(together.map(idsOf)).toEqual(alone);
    expect(alone.filter((ids) => ids.length > 1).length).toBeGreaterThan(100);
  });

  it(open, "without a filter every document, beyond `after` in the direction asked", async (bench) => {
    await stock(bench);
    expect(await walk(bench, { limit: 9, order: "desc" })).toEqual(range(200, 1).reverse());
    expect(idsOf(await bench.pets.list({ after: 3, limit: 2, order: "asc" }))).toEqual([4, 5]);
    expect(idsOf(await bench.pets.list({ after: 3, limit: 9, order: "desc" }))).toEqual([2, 1]);
    expect(await bench.pets.list({ after: 200, limit: 9, order: "asc" })).toEqual([]);
    expect(idsOf(await bench.pets.list({ limit: 1000, order: "asc" }))).toHaveLength(200);
  });

  it(open, "`after` need not exist", async ({ pets }) => {
    for (const id of [1, 5]) await save(pets, { _id: id, name: "Rex" });
    expect(idsOf(await pets.list({ where: { name: "Rex" }, after: 3, limit: 9, order: "asc" }))).toEqual([5]);
    expect(idsOf(await pets.list({ where: { name: "Rex" }, after: 3, limit: 9, order: "desc" }))).toEqual([1]);
  });

  it(open, "by a boolean, and a filter's fields in any order", async (bench) => {
    await stock(bench);
    expect(idsOf(await bench.pets.list({ where: { flag: true }, limit: 2, order: "asc" }))).toEqual([2, 4]);
    expect(idsOf(await bench.pets.list({ where: { flag: [true, false] }, limit: 2, order: "asc" }))).toEqual([1, 2]);
    const swapped = { status: "sold", categoryId: 1 } as const;
    expect(idsOf(await bench.pets.list({ where: swapped, limit: 2, order: "asc" }))).toEqual([5, 17]);
    expect(await bench.pets.list({ where: { flag: wrong(1) }, limit: 2, order: "asc" })).toEqual([]);
  });

  it(open, "a filter that is not exactly the fields of one index is a TypeError", async ({ pets }) => {
    for (const where of [
      {},
      { stock: 1 },
      { categoryId: 1 },
      { categoryId: 1, status: undefined },
      { categoryId: 1, status: "sold", name: "x" },
      { categoryId: 1, status: null },
      { categoryId: { $gt: 0 }, status: "sold" },
      { name: [null] },
      { name: Number.NaN },
    ]) {
      await expect(pets.list({ where: wrong(where), limit: 1, order: "asc" })).rejects.toThrow(TypeError);
    }
  });

  it(open, "a limit below 1 or not whole is a RangeError", async ({ pets }) => {
    for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(pets.list({ limit, order: "asc" })).rejects.toThrow(RangeError);
    }
  });

  it(open, "an index holds the documents in which all of its fields are present", async ({ pets }) => {
    const shelf = async () =>
      idsOf(await pets.list({ where: { categoryId: 1, status: "sold" }, limit: 9, order: "asc" }));
    await save(pets, { _id: 1, name: "Rex", categoryId: 1 });
    expect(await shelf()).toEqual([]);
    await save(pets, { _id: 1, name: "Rex", categoryId: 1, status: "sold" });
    expect(await shelf()).toEqual([1]);
    await save(pets, { _id: 1, name: "Rex", categoryId: 1, status: wrong(undefined) });
    expect(await shelf()).toEqual([]);
    await save(pets, { _id: 1, name: "Rex", status: "sold" });
    expect(await shelf()).toEqual([]);
    await save(pets, { _id: 1, name: "Rex", categoryId: 2, status: "sold" });
    expect(await shelf()).toEqual([]);
  });

  it(open, "more than one answer of MongoDB holds comes whole", async ({ pets }) => {
    const name = "x".repeat(6 * 1024 * 1024);
    for (const id of range(3, 1)) await save(pets, { _id: id, name, flag: true });
    expect(idsOf(await pets.list({ where: { flag: true }, limit: 9, order: "asc" }))).toEqual([1, 2, 3]);
    expect(idsOf(await pets.list({ where: { flag: true }, limit: 3, order: "desc" }))).toEqual([3, 2, 1]);
    expect(idsOf(await pets.getMany(range(9)))).toEqual([1, 2, 3]);
    const atOnce = range(3, 1).map((limit) => pets.list({ where: { flag: true }, limit, order: "asc" }));
    expect((await Promise.all(atOnce)).map(idsOf)).toEqual([[1], [1, 2], [1, 2, 3]]);
  });

  it(open, "string ids are ordered by their UTF-8 bytes", async ({ notes }) => {
    const ordered = ["A\u0001", "A\u0001\u0000", "B", "a", "a\u0000b", "aa", "z", "é", "\ufffd", "\u{1F600}"];
    for (const id of ordered.toReversed()) await save(notes, { _id: id, text: id.length > 1 ? "long" : "short" });
    expect(idsOf(await notes.list({ limit: 20, order: "asc" }))).toEqual(ordered);
    const both = { where: { text: ["long", "short"] }, limit: 20 };
    expect(idsOf(await notes.list({ ...both, order: "desc" }))).toEqual(ordered.toReversed());
    expect(idsOf(await notes.list({ ...both, order: "asc", after: "z" }))).toEqual(["é", "\ufffd", "\u{1F600}"]);
  });

  it(open, "more values than one statement can take are merged in order", async ({ notes }) => {
    const texts = range(700).map((i) => `t${i}`);
    await Promise.all(texts.map((text, i) => save(notes, { _id: `n${(i * 37) % 700}\u0000x`, text })));
    const all = texts.map((_, i) => `n${i}\u0000x`).sort();
    const query = { where: { text: texts }, limit: 30 };
    expect(idsOf(await notes.list({ ...query, order: "asc" }))).toEqual(all.slice(0, 30));
    expect(idsOf(await notes.list({ ...query, order: "desc" }))).toEqual(all.toReversed().slice(0, 30));
  });

  it(open, "keys are compared exactly: case, accents, normal form, U+0000", async ({ notes }) => {
    const texts = ["Rex", "rex", "re\u0301x", "réx", "rex\u0000", "rex "];
    for (const [i, text] of texts.entries()) await save(notes, { _id: `x${i}`, text });
    for (const [i, text] of texts.entries()) {
      expect(idsOf(await notes.list({ where: { text }, limit: 9, order: "asc" }))).toEqual([`x${i}`]);
    }
  });

  it(open, "paging while rows come and go: who stays is seen once, nobody twice", async (bench) => {
    await stock(bench);
    const { pets } = bench;
    const seen: number[] = [];
    let newcomer = 1000;
    for (let after: number | undefined; ; after = seen.at(-1)) {
      const page = await pets.list({ where: { flag: true }, after, limit: 5, order: "desc" });
      seen.push(...page.map((doc) => doc._id));
      if (page.length < 5) break;
      const last = seen.at(-1) ?? 0;
      await save(pets, { ...stocked(newcomer), _id: newcomer++, flag: true });
      await pets.remove(last, isAt(1));
      await pets.update(last - 2, (doc) => put({ ...doc, _id: last - 2, name: "moved", flag: false }, 0));
      await pets.update(last - 4, (doc) => put({ ...doc, _id: last - 4, name: "touched", flag: true }, 0));
    }
    const moved = await pets.list({ where: { name: "moved" }, limit: 99, order: "asc" });
    expect(moved.length).toBeGreaterThan(5);
    const stayed = range(100, 1)
      .map((i) => 2 * i)
      .filter((id) => moved.every((doc) => doc._id !== id));
    expect(seen).toEqual(stayed.reverse());
  });
}
