import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import type { Decide } from "@petstore/store/port";
import { describe, expect, test } from "vitest";
import type { InventoryDoc } from "../services/inventory/model.ts";
import type { OrderDoc } from "../services/order/model.ts";
import type { PetDoc } from "../services/pet/model.ts";
import { configurationProblems, doctorConfig } from "./config.ts";
import {
  advice,
  around,
  byItself,
  createFindings,
  figuresOf,
  finding,
  invariantNames,
  nameOf,
  report,
  seenTwice,
  shownOf,
} from "./findings.ts";
import type { Mending } from "./mending.ts";
import { wrongInPair } from "./rules/pets.ts";
import { wrongInReservation } from "./rules/stock.ts";
import { portsOf, wrongPorts } from "./surroundings.ts";

const pet = (id: number, of?: number) =>
  finding("status-stale", [`pet/${id}`], `It is wrong (${of}).`, { of, mend: async () => {} });
const sum = finding("stock-sum", ["inventory/1"], "Units are missing.");

test("what is found is counted, 0 where nothing is, and named in one order", () => {
  const found = createFindings();
  found.add([pet(1), pet(2)]);
  found.add([sum]);
  const figures = figuresOf(found.list());
  expect(Object.fromEntries(figures)).toMatchObject({ "stock-sum": 1, "status-stale": 2, "index-missing": 0 });
  expect([...figures.keys()]).toEqual(invariantNames);
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
  expect(figuresOf(found.list()).get("status-stale")).toBe(2);
});

test("what changes from one look to the next was not seen twice", () => {
  expect(seenTwice([pet(1, 7), pet(2, 7), sum], [pet(1, 7), pet(2, 8), pet(3, 7), sum])).toMatchObject([
    { ids: ["pet/1"] },
    { ids: ["inventory/1"] },
  ]);
});

test("how many more there are is left out where none of those that are named is left", () => {
  const look = (of: number) => {
    const found = createFindings(1);
    found.add([pet(1, of), pet(2, of)]);
    return [...found.list(), around("env-clock", "It is late.")];
  };
  expect(seenTwice(look(7), look(7))).toHaveLength(3);
  expect(seenTwice(look(7), look(8))).toMatchObject([{ invariant: "env-clock" }]);
});

test("an entry that is opened anew is listed as its pet was, whatever open orders had made of that", async () => {
  const doc = { _id: 1, state: "ACTIVE", listing: "available", status: "pending", statusRev: 7 } as unknown as PetDoc;
  let entry: InventoryDoc | undefined;
  const update = async (_: number, decide: Decide<InventoryDoc, unknown>) => {
    const decision = decide(entry, 1);
    if (decision.action === "put") entry = { ...decision.doc, rev: 1 };
  };
  for (const { mend } of wrongInPair(doc, undefined)) await mend?.({ entries: { update } } as unknown as Mending);
  expect(entry).toMatchObject({ listing: "available", quantity: 0, status: "sold" });
});

test("of a reservation and its order that change, what is seen later is another finding", () => {
  const held = { petId: 1, order: 2, units: 3, tag: "one" };
  const order = { _id: 2, petId: 1, tag: "one", state: "CANCELLED" } as unknown as OrderDoc;
  const names = [
    ...wrongInReservation(held, undefined),
    ...wrongInReservation(held, order),
    ...wrongInReservation({ ...held, tag: "two" }, undefined),
  ].map(nameOf);
  expect(new Set(names).size).toBe(3);
});

describe("for people", () => {
  test("what the petstore finishes by itself needs no stop", () => {
    expect(report([finding("stuck-pending", ["pet/1"], "It waits.", { mend: byItself })])).toContain(
      `\n  -> ${advice["stuck-pending"]}\n`,
    );
  });
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

  test("one that answers is taken, however late this process comes to hear of it", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const looking = portsOf(doctorConfig({ PORT_BASE: `${port}` }));
    // When it has asked.
    process.nextTick(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500));
    const [first] = await looking;
    server.close();
    expect(first).toEqual({ port, name: "gateway", isTaken: true });
  });
});
