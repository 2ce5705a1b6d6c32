/** That the cases leave nothing of the kitchen sink out. */
import { globSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { surveyOf } from "../contract/operations.ts";
import { createRouter } from "../server/router.ts";
import { kitchenSink } from "./kitchen-sink/files.ts";
import { servicesOf } from "./run/contract.ts";

test.each(kitchenSink)("each RPC and each rule that is served has a case that reaches it", ({ contract, cases }) => {
  const reached = new Set(cases.map(({ rpc }) => rpc?.method));
  const services = servicesOf(contract()).filter(({ name }) => name !== "Bad");
  const rpcs = services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`));
  expect(rpcs.filter((name) => !reached.has(name))).toEqual([]);
  const operations = services.flatMap((service) => surveyOf(service).operations);
  const router = createRouter(operations, "");
  const asked = new Set(
    cases.filter(({ rpc }) => rpc).map(({ request: { method = "GET", path } }) => router.find(method, path)),
  );
  expect(operations.filter((one) => !asked.has(one)).map(({ verb, route }) => `${verb} ${route}`)).toEqual([]);
});

test("each file of cases is run", () => {
  const run = new Set(kitchenSink.flatMap(({ cases }) => cases.map(({ name }) => name.split(":")[0])));
  const files = globSync("kitchen-sink/*.json", { cwd: import.meta.dirname });
  expect(files.map((path) => basename(path, ".json")).filter((row) => !run.has(row))).toEqual([]);
});
