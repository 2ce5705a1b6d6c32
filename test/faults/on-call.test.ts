/**
 * What somebody on call relies on, while services are killed under load: after each round of kills the doctor finds nothing,
 * and a backup is made and is whole; in the end the metrics are exact, what was recovered leads back to its request, and the
 * last backup, restored after everything was killed, has what was answered before it.
 *
 * ON_CALL_MINUTES says how long, PETSTORE_TEST_STORE on which store.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { METRICS } from "../../processes/metrics.ts";
import { adminPortOf, processNames, type ServiceName, serviceNames } from "../../processes/names.ts";
import { eventually } from "../harness/eventually.ts";
import { startReplicaSet } from "../harness/mongod.ts";
import { startOtlpReceiver } from "../harness/otlp-receiver.ts";
import type { Petstore } from "../harness/petstore.ts";
import { sumOf } from "../harness/samples.ts";
import { startTraced } from "../traces/petstore.ts";
import { type Answered, keepBusy } from "../workload/busy.ts";
import { onCallMinutes } from "../workload/runs.ts";

/** Random kills in a round, each up to so many milliseconds after the last one. */
const KILLS = 4;
const PAUSE_MS = 2_000;
/** Far above what a process takes, and far below what one that leaks under this load would. */
const MAX_BYTES = 512 * 1024 * 1024;

const recoveries = new Set(["pet.recovery", "category.recovery", "inventory.reservations"]);
/** Half done there, a request leaves something to be recovered. */
const halfway: readonly [ServiceName, string][] = [
  ["order", "order.reserved-stock"],
  ["pet", "pet.creating"],
];

async function command(script: string, args: readonly string[], { http, store }: Pick<Petstore, "http" | "store">) {
  const { dataDir, mongodbUri = "" } = store;
  const env = { PATH: process.env.PATH, DATA_DIR: dataDir, MONGODB_URI: mongodbUri, PORT_BASE: new URL(http).port };
  const run = promisify(execFile)(process.execPath, [script, ...args], { env });
  const { code = 0, stdout, stderr } = await run.catch((error) => error);
  return { code, stdout, stderr };
}

const metricsOf = (http: string) =>
  Promise.all(
    processNames.map(async (name) => {
      const port = adminPortOf(name, Number(new URL(http).port), 1, new Map());
      return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    }),
  );

test("under load, while services are killed", { timeout: 600_000 + onCallMinutes * 120_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "on-call-"));
  stack.defer(() => rm(dir, { recursive: true }));
  const isOnMongodb = process.env.PETSTORE_TEST_STORE === "mongodb";
  // One of its own: a restore waits until nobody uses the server's petstores. What the doctor asks of an oplog, for that of a
  // test is full after some minutes.
  const oplog = ["--oplogMinRetentionHours", "24"];
  const mongodbUri = isOnMongodb ? stack.use(await startReplicaSet({ arguments: oplog })).uri : undefined;
  const requests = new Set<string>();
  const receiver = await startOtlpReceiver(({ service, parentId, traceId, name }) => {
    if (service === "gateway" && parentId === "") requests.add(traceId);
    return recoveries.has(name);
  });
  stack.use(receiver);
  const env = {
    ...{ ADMIN_PORT: "", LOG_LEVEL: "warn" },
    ...{ OTEL_BSP_SCHEDULE_DELAY: "500", OTEL_BSP_MAX_QUEUE_SIZE: "100000" },
  };
  const petstore = await startTraced(receiver, {
    env,
    ...(mongodbUri && { mongodbUri }),
    replicas: 1,
    isSingle: false,
  });
  stack.use(petstore);
  const { http } = petstore;
  const doctor = async () => {
    const { code, stdout, stderr } = await command("doctor/main.ts", ["--json"], petstore);
    return code === 0 ? [] : [stderr, ...(stdout && JSON.parse(stdout).findings)];
  };
  const data = (...args: string[]) => command("backup/main.ts", args, petstore);

  const answered: Answered[] = [];
  const over = new AbortController();
  stack.defer(() => over.abort());
  const clients = keepBusy(http, over.signal, (one) => void answered.push(one));
  let [round, kills, largest, instant] = [0, 0, 0, ""];
  const until = performance.now() + onCallMinutes * 60_000;
  do {
    const [service, point] = halfway[round++ % halfway.length] as (typeof halfway)[number];
    await petstore.arm(service, point);
    await petstore.ended(service);
    await petstore.start(service);
    for (let i = 0; i < KILLS; i++) {
      await sleep(Math.random() * PAUSE_MS);
      const name = serviceNames[Math.floor(Math.random() * serviceNames.length)] ?? service;
      await petstore.kill(name);
      await petstore.start(name);
    }
    kills += 1 + KILLS;
    // What a crash left behind is a finding until workers have come to it.
    await eventually(doctor, []);
    await rm(join(dir, `backup-${round - 1}`), { recursive: true, force: true });
    const backup = join(dir, `backup-${round}`);
    const made = await data("backup", backup);
    expect(made).toMatchObject({ code: 0, stderr: expect.stringMatching(/answered before \S+Z/) });
    [, instant = ""] = /answered before (\S+Z)/.exec(made.stderr) ?? [];
    expect(await data("verify", backup)).toMatchObject({ code: 0 });
    const sizes = (await metricsOf(http)).map((text) => sumOf([text], METRICS.memory.name) ?? Number.NaN);
    largest = Math.max(largest, ...sizes);
    expect(largest).toBeLessThan(MAX_BYTES);
  } while (performance.now() < until);
  over.abort();
  expect(await clients).toBe(answered.length);

  // The gateway lived, so it has counted each answer.
  const byWhat = Object.entries(Object.groupBy(answered, ({ what }) => what));
  const counted = async () => {
    const texts = await metricsOf(http);
    return byWhat.map(([what]) => {
      const [http_request_method = "", http_route = "", http_response_status_code = ""] = what.split(" ");
      const labels = { http_request_method, http_route, http_response_status_code };
      return [what, sumOf(texts, `${METRICS.requests.name}_count`, labels)];
    });
  };
  await eventually(
    counted,
    byWhat.map(([what, all = []]) => [what, all.length]),
  );
  expect(await doctor()).toEqual([]);

  await Promise.all(processNames.map((name) => petstore.kill(name, name === "gateway" ? "SIGTERM" : "SIGKILL")));
  expect(receiver.spans.length).toBeGreaterThan(0);
  for (const { links } of receiver.spans) {
    expect(links.length).toBeGreaterThan(0);
    for (const { traceId } of links) expect(requests).toContain(traceId);
  }

  expect(await data("restore", join(dir, `backup-${round}`), "--replace")).toMatchObject({ code: 0 });
  await Promise.all(processNames.map((name) => petstore.start(name)));
  // It also brings back what was under way at its instant.
  await eventually(doctor, []);
  const ordersIn = (what: RegExp) => answered.filter((one) => what.test(one.what));
  const deleted = new Set(ordersIn(/^DELETE \/store\/orders/).map(({ id }) => id));
  const orders = ordersIn(/^POST \/store\/orders 201$/).filter(({ id }) => !deleted.has(id));
  const earlier = orders.filter(({ at }) => at < Date.parse(instant));
  expect(earlier.length).toBeGreaterThan(10);
  for (const { id } of earlier)
    expect([id, (await petstore.ask("GET", `/store/orders/${id}`)).status]).toEqual([id, 200]);
  const { record } = await petstore.ask<{ id: number }>("POST", "/store/orders", { petId: await petstore.newPet() });
  expect(record.id).toBeGreaterThan(Math.max(...orders.map(({ id }) => id)));
  const store = isOnMongodb ? "MongoDB" : "the embedded store";
  const told = {
    rounds: round,
    kills,
    answered: answered.length,
    recoveries: receiver.spans.length,
    orders: earlier.length,
  };
  process.stdout.write(`on ${store}: ${JSON.stringify({ ...told, mebibytes: Math.round(largest / 1024 / 1024) })}\n`);
});
