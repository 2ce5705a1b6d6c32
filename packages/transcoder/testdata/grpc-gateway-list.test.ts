/** Each of grpc-gateway's tests has a case, or a reason why it has none. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

interface Restated {
  readonly name: string;
  readonly from: string;
  readonly theirs?: string;
  readonly because?: string;
}

const folder = join(import.meta.dirname, "grpc_gateway");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const tests = read("tests.txt").trimEnd().split("\n");
const cases = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .flatMap((name) => JSON.parse(read(name)) as Restated[]);

/** "runtime/query_test.go TestPopulateParameters", without the row. */
const testOf = ({ from }: Restated): string => /^grpc-gateway (\S+ \w+)/.exec(from)?.[1] ?? from;
const without = read("README.md")
  .split("\n")
  .flatMap((line) => {
    const [, file, names] = /^\| (\S+_test\.go) \| (.+?) \| .+ \|$/.exec(line) ?? [];
    return names?.split(" ").map((name) => `${file} ${name}`) ?? [];
  });

test("each of their tests has a case or a reason, and none has both", () => {
  const all = [...new Set(cases.map(testOf)), ...without].sort();
  expect(all).toEqual([...tests].sort());
});

test("where we answer otherwise it says why", () => {
  expect(cases.filter(({ theirs, because }) => (theirs === undefined) !== (because === undefined))).toEqual([]);
});
