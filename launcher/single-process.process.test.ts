/** `npm start -- --single-process`: the same petstore at the same addresses, on the same data, in one process. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Run, run } from "../packages/runtime/fixtures/run.ts";
import { clientsAt } from "../packages/store/fixtures/mongo.ts";
import { portOf } from "../processes/names.ts";
import { freePorts } from "../test/harness/instances.ts";
import { mongodMissing, startReplicaSet } from "../test/harness/mongod.ts";

const timeout = 120_000;
const script = join(import.meta.dirname, "main.ts");
const dataDir = await mkdtemp(join(tmpdir(), "single-process-"));
afterAll(() => rm(dataDir, { recursive: true }));

async function start(args: readonly string[], env: Record<string, string> = {}): Promise<{ it: Run; port: number }> {
  const port = await freePorts();
  const it = run([script, ...args], { PORT_BASE: `${port}`, DATA_DIR: dataDir, ...env });
  onTestFinished(() => it[Symbol.asyncDispose]());
  return { it, port };
}
const ask = async (port: number, path: string, body?: object, more = {}): Promise<unknown> => {
  const headers = { "content-type": "application/json", ...more };
  const content = { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, body && content);
  return answer.json();
};
/** Becomes how ready it is: on a busy machine a service may not have answered one look in time. */
const readiness = (port: number) => expect.poll(() => ask(port, "/readyz"));
const pids = /"pid":\d+/g;

test("what one mode has stored the other goes on with, and back", { timeout }, async () => {
  const first = await start(["--single-process"]);
  await first.it.printed(/Ctrl-C stops everything/);
  await readiness(first.port).toEqual({ status: "ready", failing: [] });
  await readiness(first.port + 100).toEqual({ status: "ready", failing: [] });
  await ask(first.port, "/categories", { name: "dogs" });
  await ask(first.port, "/pets", { name: "Rex", categoryId: 1 });
  const order = await ask(first.port, "/store/orders", { petId: 1 });
  expect(order).toMatchObject({ id: 1, petId: 1, quantity: 1 });
  expect(new Set(first.it.output().match(pids)).size).toBe(1);
  // Whatever was answered is on disk.
  first.it.process.kill("SIGKILL");
  await first.it.ended;

  const second = await start([]);
  await second.it.printed(/Ctrl-C stops everything/);
  await expect.poll(() => new Set(second.it.output().match(pids)).size).toBe(5);
  await expect.poll(() => ask(second.port, "/store/orders")).toEqual([order]);
  await readiness(second.port + 100).toEqual({ status: "ready", failing: [] });
  await readiness(second.port + 101).toEqual({ status: "ready" });
  // Where a service was too slow to answer another it is sent again.
  await expect
    .poll(() => ask(second.port, "/pets", { name: "Tom", categoryId: 1 }, { "idempotency-key": "Tom" }))
    .toMatchObject({ name: "Tom" });
  second.it.process.kill("SIGTERM");
  expect(await second.it.ended).toBe(0);

  const third = await start([], { SINGLE_PROCESS: "1" });
  await third.it.printed(/Ctrl-C stops everything/);
  const baseUrl = `http://127.0.0.1:${portOf("pet", third.port)}`;
  const { pets } = await createClient(PetService, createGrpcTransport({ baseUrl })).listPets({});
  expect(pets.map(({ name }) => name)).toEqual(["Tom", "Rex"]);
  third.it.process.kill("SIGTERM");
  expect(await third.it.ended).toBe(0);
});

test.skipIf(mongodMissing)("all services have one client at MongoDB, and stop with it", { timeout }, async () => {
  await using set = await startReplicaSet();
  const { it, port } = await start(["--single-process"], { MONGODB_URI: set.uri });
  await it.printed(/Ctrl-C stops everything/);
  await ask(port, "/categories", { name: "dogs" });
  await ask(port, "/pets", { name: "Rex", categoryId: 1 });
  expect(await ask(port, "/store/orders", { petId: 1 })).toMatchObject({ id: 1, quantity: 1 });
  await expect.poll(() => clientsAt(set.uri)).toBe(1);
  it.process.kill("SIGTERM");
  expect(await it.ended).toBe(0);
  await expect.poll(() => clientsAt(set.uri), { timeout: 20_000 }).toBe(0);
});

test("a port that is taken, several of a process, and an unknown argument are refused in one line", {
  timeout,
}, async () => {
  const running = await start(["--single-process"]);
  await running.it.printed(/Ctrl-C stops everything/);
  const other = await mkdtemp(join(tmpdir(), "single-process-"));
  onTestFinished(() => rm(other, { recursive: true }));
  const refusals = [
    [["--single-process"], { PORT_BASE: `${running.port}`, DATA_DIR: other }, /port \d+ is taken/],
    [["--single-process"], { REPLICAS: "gateway:2", DATA_DIR: other }, /REPLICAS asks for several processes/],
    [["--one"], {}, /--one is not known: the only argument is --single-process/],
    [[], { SINGLE_PROCESS: "yes" }, /SINGLE_PROCESS=yes is wrong/],
  ] as const;
  for (const [args, env, why] of refusals) {
    const { it } = await start(args, env);
    expect(await it.ended).toBe(1);
    expect(it.output()).toMatch(why);
    expect(it.output()).not.toContain("    at ");
  }
});
