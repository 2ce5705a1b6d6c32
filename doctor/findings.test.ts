import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { configurationProblems } from "./config.ts";
import { advice, createFindings, finding, invariantNames, seenTwice, shownOf } from "./findings.ts";
import { report } from "./report.ts";
import { wrongPorts } from "./surroundings.ts";

const pet = (id: number, of?: number) =>
  finding("status-stale", [`pet/${id}`], `It is wrong (${of}).`, { of, mend: async () => {} });
const sum = finding("stock-sum", ["inventory/1"], "Units are missing.");

test("what is found is counted, 0 where nothing is, and named in one order", () => {
  const found = createFindings();
  found.add([pet(1), pet(2)]);
  found.add([sum]);
  expect(found.figures()).toMatchObject({ "stock-sum": 1, "status-stale": 2, "index-missing": 0 });
  expect(Object.keys(found.figures())).toEqual(invariantNames);
  expect(found.list()).toMatchObject([{ ids: ["inventory/1"] }, { ids: ["pet/1"] }, { ids: ["pet/2"] }]);
});

test("of very many findings the first are named, and the others counted", () => {
  const found = createFindings(2);
  for (let id = 1; id <= 1_000_000; id++) found.add([pet(id)]);
  expect(found.list().map(shownOf)).toEqual([
    { invariant: "status-stale", ids: ["pet/1"], detail: "It is wrong (undefined).", repair: "safe" },
    { invariant: "status-stale", ids: ["pet/2"], detail: "It is wrong (undefined).", repair: "safe" },
    { invariant: "status-stale", ids: [], detail: "There are 999998 more of these.", repair: "safe" },
  ]);
  expect(found.figures()["status-stale"]).toBe(1_000_000);
});

test("what changes from one look to the next was not seen twice", () => {
  expect(seenTwice([pet(1, 7), pet(2, 7), sum], [pet(1, 7), pet(2, 8), pet(3, 7), sum])).toMatchObject([
    { ids: ["pet/1"] },
    { ids: ["inventory/1"] },
  ]);
});

describe("for people", () => {
  test("each kind with what to do, and what it comes to", () => {
    expect(report([sum, pet(1, 7), pet(2, 8)])).toBe(`stock-sum
  inventory/1  Units are missing.
  -> ${advice["stock-sum"]}
status-stale
  pet/1  It is wrong (7).
  pet/2  It is wrong (8).
  -> Stop the petstore, then: npm run -s doctor -- --repair

Found: 2 safe to repair, 1 for somebody to decide. docs/doctor.md says what each means.
`);
  });
  test("a long list is cut", () => {
    const lines = report(Array.from({ length: 50 }, (_, i) => pet(i))).split("\n");
    expect(lines).toContain("  and 30 more: --json names them");
    expect(lines.length).toBeLessThan(30);
  });
  test("nothing is said to be nothing", () => expect(report([])).toBe("Nothing found: all is as it should be.\n"));
});

test("the page has a row for each invariant", () => {
  const rows = readFileSync("docs/doctor.md", "utf8").match(/^\| `[a-z][a-z-]+`(?= \|)/gm) ?? [];
  expect(rows.map((row) => row.slice(3, -1)).filter((name) => !name.startsWith("env-"))).toEqual(invariantNames);
});

test("a port for the one process of a container is right", () => {
  expect(configurationProblems({ PORT: "8080" })).toEqual([]);
  expect(configurationProblems({ PORT_BAES: "8080" })).toEqual([expect.stringContaining("PORT_BAES")]);
});

describe("ports", () => {
  const port = (number: number, isTaken: boolean) => ({ port: number, name: "pet", isTaken });
  test.each([
    ["all are taken while it runs", [port(1, true), port(2, true)], true, []],
    ["one is not", [port(1, true), port(2, false)], true, ["2"]],
    ["all are free while it is stopped", [port(1, false), port(2, false)], false, []],
    ["one is not", [port(1, false), port(2, true)], false, ["2"]],
    ["nobody knows whether it runs, and none is taken", [port(1, false)], undefined, []],
    ["nobody knows, and some are", [port(1, true), port(2, false)], undefined, ["2"]],
  ])("%s: %j, %s", (_, ports, isLive, wrong) => {
    const found = wrongPorts(ports, isLive);
    expect(found.flatMap(({ ids }) => ids)).toEqual(wrong);
    for (const one of found) expect(one).toMatchObject({ invariant: "env-ports", repair: null });
  });
});
