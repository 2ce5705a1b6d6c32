import { BSONRegExp, serialize } from "bson";
import { expect, test } from "vitest";
import { decode } from "../document/codec.ts";
import { Corrupt } from "../port.ts";
import { readable, reporting } from "./queries.ts";

test("each document that can't be read is logged, and again after an hour", () => {
  let now = 0;
  const logged: string[] = [];
  const told: (string | undefined)[] = [];
  const report = reporting(
    { error: ({ err }: { err: Error }) => logged.push(err.message) } as never,
    () => now,
    (collection) => told.push(collection),
  );
  for (const time of [0, 1_000, 3_599_999]) {
    now = time;
    report(new Corrupt("Document 1", { collection: "pets" }));
    report(new Corrupt("Document 2"));
  }
  expect(logged).toEqual(["Document 1", "Document 2"]);
  expect(told).toEqual(["pets", undefined, "pets", undefined, "pets", undefined]);
  now = 3_600_000;
  report(new Corrupt("Document 2"));
  expect(logged).toEqual(["Document 1", "Document 2", "Document 2"]);
  for (let id = 3; id < 3_000; id++) report(new Corrupt(`Document ${id}`));
  expect(logged).toHaveLength(2 + 1_000);
});

test.each([
  ["a pattern that JavaScript does not know", serialize({ _id: 7, rev: 1, a: new BSONRegExp("(") })],
  [
    "a text that is no UTF-8",
    Uint8Array.of(23, 0, 0, 0, 16, 95, 105, 100, 0, 7, 0, 0, 0, 2, 97, 0, 2, 0, 0, 0, 255, 0, 0),
  ],
])("a document with %s is named", (_, bytes) => {
  const read = () => decode(bytes, { name: "things" });
  expect(read).toThrow("Document 7 of things can't be read");
  expect(read).toThrow(expect.objectContaining({ collection: "things" }));
});

test("only what can't be read is left out: any other failure is one", () => {
  const broken = () => {
    throw new RangeError("a bug");
  };
  expect(() => readable([1], broken, () => {})).toThrow(RangeError);
});
