import { expect, test } from "vitest";
import { Corrupt } from "../port.ts";
import { readable, reporting } from "./corrupt.ts";

test("each document that can't be read is logged, and again after an hour", () => {
  let now = 0;
  const logged: string[] = [];
  const report = reporting({ error: ({ err }: { err: Error }) => logged.push(err.message) } as never, () => now);
  for (const time of [0, 1_000, 3_599_999]) {
    now = time;
    report(new Corrupt("Document 1"));
    report(new Corrupt("Document 2"));
  }
  expect(logged).toEqual(["Document 1", "Document 2"]);
  now = 3_600_000;
  report(new Corrupt("Document 2"));
  expect(logged).toEqual(["Document 1", "Document 2", "Document 2"]);
  for (let id = 3; id < 3_000; id++) report(new Corrupt(`Document ${id}`));
  expect(logged).toHaveLength(2 + 1_000);
});

test("only what can't be read is left out: any other failure is one", () => {
  const broken = () => {
    throw new RangeError("a bug");
  };
  expect(() => readable([1], broken, () => {})).toThrow(RangeError);
});
