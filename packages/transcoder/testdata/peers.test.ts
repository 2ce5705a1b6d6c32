/** Each test function of the peers is restated by a case, or README.md beside the cases says why not. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

interface Restated {
  readonly from?: string;
  readonly theirs?: string;
  readonly because?: string;
  readonly requests?: readonly Restated[];
  readonly refuses?: readonly Restated[];
}

test.each(["vanguard", "envoy"])("%s", (name) => {
  const folder = join(import.meta.dirname, name);
  const read = (file: string) => readFileSync(join(folder, file), "utf8");
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
  const cases = files.flatMap((file) => JSON.parse(read(file)) as Restated[]);
  const rows = read("README.md")
    .split("\n")
    .filter((line) => line.startsWith("| "));
  const said = [...cases.map(({ from = "" }) => from), ...rows];
  const words = said.map((text) => new Set(text.match(/[\w.]+/g)));
  const functions = read("tests.txt")
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [file = "", names = ""] = line.split(": ");
      return names.split(" ").map((one) => [file.split(" ").at(-1) ?? "", one] as const);
    });
  expect(functions.filter(([file, one]) => !words.some((known) => known.has(file) && known.has(one)))).toEqual([]);
  // Who answers otherwise says why.
  const all = cases.flatMap((one) => [one, ...(one.requests ?? []), ...(one.refuses ?? [])]);
  expect(cases.filter(({ from }) => !from)).toEqual([]);
  expect(all.filter(({ theirs, because }) => (theirs === undefined) !== (because === undefined))).toEqual([]);
});
