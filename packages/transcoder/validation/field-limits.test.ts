import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { compileLibrary } from "../fixtures/compile.ts";
import { curtail, MAX_PATHS } from "./field-limits.ts";

const messageOf = (name: string) => compileLibrary().getMessage(`foreign.library.v1.${name}`) as DescMessage;
const [ListBooks, ChangeBook] = ["ListBooksRequest", "ChangeBookRequest"].map(messageOf) as [DescMessage, DescMessage];
type Fields = Record<string, unknown>;
const make = (desc: DescMessage, init: Fields) => create(desc, init as never) as Message & Fields;
const note = (text: string) => (curtail(ChangeBook, make(ChangeBook, { note: { text, page: 7n } })) as Fields).note;

test("leaves a message alone that fits", () => {
  const fits = make(ChangeBook, {
    note: { text: "\u{1f415}".repeat(5), words: Array(5000).fill("unlimited") },
    updateMask: { paths: Array(MAX_PATHS).fill("text") },
  });
  expect(curtail(ChangeBook, fits)).toBe(fits);
});

test("leaves one unit too many, and the message that was given as it was", () => {
  const given = make(ListBooks, { edition: Array(5000).fill(1n), title: "x".repeat(5000), limit: 3 });
  const lengths = ({ edition, title }: Fields) => [(edition as unknown[]).length, (title as string).length];
  const cut = curtail(ListBooks, given);
  expect([...lengths(cut), cut.limit]).toEqual([101, 6, 3]);
  expect(lengths(given)).toEqual([5000, 5000]);
  expect(lengths(curtail(ListBooks, make(ListBooks, { edition: Array(101).fill(1n), title: "" })))).toEqual([101, 0]);
});

test("cuts between characters, also in messages within", () => {
  expect(note("\u{1f415}".repeat(5000))).toMatchObject({ text: "\u{1f415}".repeat(6) });
  expect(note(`x${"\u{1f415}".repeat(5000)}`)).toMatchObject({ text: `x${"\u{1f415}".repeat(5)}` });
  expect(note("x".repeat(5000))).toMatchObject({ text: "x".repeat(6), page: 7n });
  expect(note("x".repeat(6))).toMatchObject({ text: "x".repeat(6) });
});
