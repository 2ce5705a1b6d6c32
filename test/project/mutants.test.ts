/** Every guard that has a mutant is still in the code, and the table of docs/reliability.md says what kills the mutant. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { guards, wrongMutants } from "../mutants/guards.ts";
import { outcomesIn, PAGE, SURVIVED, tableIn, withOutcomes } from "../mutants/table.ts";

const page = readFileSync(PAGE, "utf8");

test("every mutant applies, and is that of one guard", () => {
  expect(wrongMutants()).toEqual([]);
  expect(new Set(guards.map(({ guard }) => guard)).size).toBe(guards.length);
});

test("the table has every guard and what kills its mutant: npm run mutants -- --all", () => {
  expect(withOutcomes(page, new Map())).toBe(page);
  const unkilled = [...outcomesIn(tableIn(page))].filter(([, [by]]) => [SURVIVED, "not tried yet"].includes(by));
  expect(unkilled).toEqual([]);
});

describe("the table", () => {
  const [first, second] = guards.slice(0, 2).map(({ guard }) => guard);
  test("keeps what is known of those that were not tried", () => {
    const once = withOutcomes(page, new Map([[first ?? "", { by: "a | b `c`", runs: 7 }]]));
    const twice = outcomesIn(tableIn(withOutcomes(once, new Map([[second ?? "", undefined]]))));
    expect(twice.get(first ?? "")).toEqual(["a \\| b 'c'", "7"]);
    expect(twice.get(second ?? "")).toEqual([SURVIVED, ""]);
    expect(twice.size).toBe(guards.length);
  });
});
