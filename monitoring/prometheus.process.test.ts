/** A real Prometheus beside `npm start` and `npm run demo` finds data for every panel, and no reason to wake anybody. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { run } from "../packages/runtime/fixtures/run.ts";
import { adminPortOf, processNames } from "../processes/names.ts";
import { freePorts } from "../test/harness/instances.ts";
import { prometheusMissing, startPrometheus } from "../test/harness/prometheus.ts";
import { dashboards } from "./dashboards.ts";
import { queriesIn } from "./fixtures/queries.ts";
import { rulesOf } from "./rules.ts";

test.skipIf(prometheusMissing)("each panel shows something, and no alert fires", { timeout: 300_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "monitored-"));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const base = await freePorts();
  const env = { PORT_BASE: `${base}`, DATA_DIR: dir, LOG_LEVEL: "warn", PATH: process.env.PATH ?? "" };
  const petstore = stack.use(run(["launcher/main.ts"], env));
  await petstore.printed(/is ready/);
  const targets = processNames.map((name) => `127.0.0.1:${adminPortOf(name, base, 1, new Map())}`);
  const prometheus = stack.use(await startPrometheus(targets, rulesOf()));
  const demo = stack.use(run(["demo/main.ts", "--pets", "20", "--rate", "20"], env));
  await demo.printed(/The shop has/);

  let empty = queriesIn(dashboards());
  expect(empty.length).toBeGreaterThan(30);
  // Some are counted in the background first.
  for (const until = Date.now() + 120_000; empty.length > 0 && Date.now() < until; await sleep(1000)) {
    const counts = await Promise.all(empty.map((expr) => prometheus.count(expr.replaceAll("$__rate_interval", "30s"))));
    empty = empty.filter((_, i) => counts[i] === 0);
  }
  expect(empty).toEqual([]);
  expect(await prometheus.ruleErrors()).toEqual([]);
  // Slow it may be here, where others need the machine as well.
  expect((await prometheus.firing()).filter((name) => name !== "PetstoreSlow")).toEqual([]);
});
