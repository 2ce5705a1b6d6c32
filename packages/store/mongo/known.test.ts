import { serialize } from "bson";
import { expect, test } from "vitest";
import type { Doc } from "../port.ts";
import { knownDocuments } from "./known.ts";
import { readStored } from "./operation-log.ts";

interface Text extends Doc {
  readonly text: string;
}
const bytesOf = (_id: number) => serialize({ _id, rev: 1, text: "x".repeat(1000), _operations: [] });

test("what is known is bounded, and what is oldest is forgotten first", () => {
  const known = knownDocuments<Text>((bytes) => readStored(bytes, { name: "texts" }));
  for (let id = 0; id < 10_000; id++) known.read(bytesOf(id));
  const left = Array.from({ length: 10_000 }, (_, id) => id).filter((id) => known.base(id)?.document);
  expect(left.length).toBeGreaterThan(200);
  expect(left.length).toBeLessThan(600);
  expect(left).toEqual(Array.from(left, (_, i) => 10_000 - left.length + i));
});

test("an id above all that were seen is most likely new, and nothing is known of one below", () => {
  const known = knownDocuments<Text>((bytes) => readStored(bytes, { name: "texts" }));
  expect(known.base(7)).toBeUndefined();
  known.read(bytesOf(5));
  expect([known.base(7), known.base(3)]).toEqual([{ document: undefined }, undefined]);
});

test("what is forgotten is not known, and what is absent is known to be", () => {
  const known = knownDocuments<Text>((bytes) => readStored(bytes, { name: "texts" }));
  known.read(bytesOf(5));
  expect(known.base(5)?.document?.doc._id).toBe(5);
  known.forget(5);
  expect(known.base(5)).toBeUndefined();
  known.noteAbsent(5);
  expect(known.base(5)).toMatchObject({ document: undefined });
});
