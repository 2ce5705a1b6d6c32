/** Lists of the documents in which a text begins with another: which, in which order, page by page. */
import { expect } from "vitest";
import { type PrefixQuery, schema } from "../port.ts";
import { type Bench, idsOf, isAt, it, NOTES, type OpenSubject, PETS, type Pet, range, save, wrong } from "./subject.ts";

/** In the order of their UTF-8 bytes. JavaScript's own order has the last but two behind the last but one. */
const TEXTS = [
  ...["A", "a", "a\u0000", "a\u0000b", "aa", "ab", "b", "z", "é", "é!", "\ud7ff", "\ud7ffz", "\ue000"],
  ...["\ufffd", "\uffff", "\u{1F600}", "\u{1F600}a", "\u{10ffff}", "\u{10ffff}a", "\u{10ffff}\u{10ffff}"],
];
const PREFIXES = [
  "",
  "a",
  "a\u0000",
  "aa",
  "aaa",
  "é",
  "\ud7ff",
  "\u{1F600}",
  "\u{10ffff}",
  "\u{10ffff}\u{10ffff}",
  "B",
];

/** Three notes for each text, the texts from the last to the first. */
async function noted({ notes }: Pick<Bench, "notes">): Promise<void> {
  for (const [i, text] of TEXTS.toReversed().entries())
    for (const letter of ["c", "a", "b"]) await save(notes, { _id: `${letter}${i}`, text });
  await save(notes, { _id: "none" });
}
const expected = (prefix: string) =>
  TEXTS.flatMap((text, i) => {
    const number = TEXTS.length - 1 - i;
    return text.startsWith(prefix) ? ["a", "b", "c"].map((letter) => `${letter}${number}`) : [];
  });

async function walk({ notes }: Pick<Bench, "notes">, prefix: string, limit: number): Promise<string[]> {
  const seen: string[] = [];
  for (let after: PrefixQuery<"text">["after"]; ; ) {
    const page = await notes.listByPrefix({ field: "text", prefix, after, limit });
    seen.push(...page.map(({ _id }) => _id));
    const last = page.at(-1);
    if (!last || page.length < limit) return seen;
    after = { key: last.text ?? "", _id: last._id };
  }
}

export function prefixes(open: OpenSubject): void {
  it(open, "in the order of UTF-8 bytes, then of `_id`, page by page through what is equal", async (bench) => {
    await noted(bench);
    for (const prefix of PREFIXES)
      for (const limit of [1, 2, 7, 100])
        expect([prefix, await walk(bench, prefix, limit)]).toEqual([prefix, expected(prefix)]);
  });

  it(open, "opened again it is the same", async (bench) => {
    await noted(bench);
    const notes = await (await bench.reopen()).collection(NOTES);
    expect(await walk({ notes }, "a", 2)).toEqual(expected("a"));
  });

  it(open, "a field that is declared later is found in the documents of before", async (bench) => {
    await save(bench.pets, { _id: 1, name: "Rex", extra: "rex" });
    const more = schema<Pet>()("pets", { ...PETS.indexes, extra: ["extra"] });
    const pets = await (await bench.reopen()).collection(more);
    expect(idsOf(await pets.listByPrefix({ field: wrong("extra"), prefix: "r", limit: 9 }))).toEqual([1]);
  });

  it(open, "`after` need not exist, and numbers as ids are ordered by value", async ({ pets }) => {
    for (const id of [9, 10, 100]) await save(pets, { _id: id, name: "Rex" });
    await save(pets, { _id: 1, name: "Rey" });
    const after = async (key: string, _id: number) =>
      idsOf(await pets.listByPrefix({ field: "name", prefix: "Re", after: { key, _id }, limit: 9 }));
    expect(await after("Rex", 9)).toEqual([10, 100, 1]);
    expect(await after("Rex", 11)).toEqual([100, 1]);
    expect(await after("Rexx", 0)).toEqual([1]);
    expect(await after("Re", 5)).toEqual([9, 10, 100, 1]);
    expect(await after("Rey", 1)).toEqual([]);
  });

  it(open, "who changes its text moves, who loses it is gone", async ({ notes }) => {
    const ids = async () => idsOf(await notes.listByPrefix({ field: "text", prefix: "re", limit: 9 }));
    for (const [_id, text] of Object.entries({ x: "rea", y: "reb", z: "rec" })) await save(notes, { _id, text });
    expect(await ids()).toEqual(["x", "y", "z"]);
    await save(notes, { _id: "x", text: "red" });
    expect(await ids()).toEqual(["y", "z", "x"]);
    await save(notes, { _id: "y" });
    await notes.remove("z", isAt(1));
    expect(await ids()).toEqual(["x"]);
    await save(notes, { _id: "x", text: "max" });
    expect(await ids()).toEqual([]);
  });

  it(open, "any number at once: each as if it were alone", async (bench) => {
    await noted(bench);
    const queries = PREFIXES.flatMap((prefix) =>
      range(5, 1).map((limit) => ({ field: "text", prefix, limit }) as const),
    );
    const together = await Promise.all(queries.map((query) => bench.notes.listByPrefix(query)));
    expect(together.map(idsOf)).toEqual(queries.map(({ prefix, limit }) => expected(prefix).slice(0, limit)));
  });

  it(
    open,
    "what no index answers is a TypeError, a limit below 1 or not whole a RangeError",
    async ({ pets, notes }) => {
      for (const query of [
        { field: "stock", prefix: "" },
        { field: "categoryId", prefix: "" },
        { field: "name", prefix: undefined },
        { field: "name", prefix: "\ud800" },
        { field: "name", prefix: "Re", after: { key: "Max", _id: 1 } },
        { field: "name", prefix: "Re", after: { key: "Re\ud800", _id: 1 } },
        { field: "name", prefix: "Re", after: { key: "Rex", _id: null } },
        { field: "name", prefix: "Re", after: { key: "Rex" } },
      ])
        await expect(pets.listByPrefix(wrong({ ...query, limit: 1 }))).rejects.toThrow(TypeError);
      for (const limit of [0, -1, 1.5, Number.NaN])
        await expect(notes.listByPrefix({ field: "text", prefix: "", limit })).rejects.toThrow(RangeError);
    },
  );
}
