/** Backups of a petstore that runs: while many clients write, with everything killed afterwards. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { takeDirectory } from "@petstore/store/directory";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { serviceNames } from "../processes/names.ts";
import { type Petstore, startPetstore } from "../test/harness/petstore.ts";
import { readState, unfinishedIn, wrongInTheStores } from "../test/harness/stores.ts";
import { fileOf } from "./places.ts";

const CLIENTS = 50;
const root = join(import.meta.dirname, "..");
const timeout = 240_000;

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "petstore-live-"));
  return () => rm(dir, { recursive: true });
});

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}
async function data(args: readonly string[], env: Record<string, string>): Promise<Ran> {
  const run = promisify(execFile)(process.execPath, [join(root, "backup/main.ts"), ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compile"), ...env },
  });
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error) => error,
  );
}

/** An answer that a client got. */
interface Answered {
  readonly client: number;
  readonly kind: "categories" | "pets" | "orders";
  readonly id: number;
  readonly at: number;
}

async function post(petstore: Petstore, path: string, body: object): Promise<{ id: number }> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${petstore.http}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const said = await answer.text();
  if (!answer.ok) throw new Error(`a client was not served at ${path}: ${said}`);
  return JSON.parse(said);
}

/** Each client makes a category, then a pet in it, then an order of it, and begins anew: so one file after the other changes. */
function keepBusy(petstore: Petstore, answered: Answered[]) {
  let isOver = false;
  async function work(client: number): Promise<void> {
    const make = async (kind: Answered["kind"], path: string, body: object) => {
      const made = await post(petstore, path, body);
      answered.push({ client, kind, id: made.id, at: Date.now() });
      return made.id;
    };
    while (!isOver) {
      const categoryId = await make("categories", "/categories", { name: `category of ${client}` });
      const petId = await make("pets", "/pets", { name: `pet of ${client}`, categoryId });
      await make("orders", "/store/orders", { petId });
    }
  }
  const all = Promise.all(Array.from({ length: CLIENTS }, (_, client) => work(client)));
  all.catch(() => {}); // reported by stop
  return {
    /** Rejects when a client was not served. */
    failed: all,
    stop() {
      isOver = true;
      return all;
    },
  };
}

const single = { PETSTORE_TEST_SINGLE_PROCESS: "1" };
test.each(["five processes", "one process"])("at the load of many clients, of %s", { timeout }, async (how) => {
  if (how === "one process") {
    const before = process.env.PETSTORE_TEST_SINGLE_PROCESS;
    Object.assign(process.env, single);
    onTestFinished(() => void (before ?? delete process.env.PETSTORE_TEST_SINGLE_PROCESS));
  }
  const of = join(dir, how.replace(" ", "-"));
  const backup = join(of, "backup");
  await using petstore = await startPetstore({ dataDir: join(of, "data"), env: { ADMIN_PORT: "" } });
  const env = { DATA_DIR: join(of, "data"), PORT_BASE: new URL(petstore.http).port };
  const answered: Answered[] = [];
  const clients = keepBusy(petstore, answered);
  const goOn = async () => {
    const before = answered.length;
    await Promise.race([
      clients.failed,
      expect.poll(() => answered.length, { timeout: 60_000 }).toBeGreaterThan(before + 5 * CLIENTS),
    ]);
  };
  await goOn();

  const made = await data(["backup", backup], env);
  expect(made).toMatchObject({ code: 0, stderr: expect.stringMatching(/answered before \S+Z/) });
  const [, instant = ""] = /answered before (\S+Z)/.exec(made.stderr) ?? [];
  await goOn();
  expect((await data(["backup", backup], env)).code).toBe(1);
  expect(await data(["export", join(of, "all.jsonl")], env)).toMatchObject({ code: 0 });
  expect(await data(["export", join(of, "all.jsonl")], env)).toMatchObject({ code: 1 });
  await clients.stop();
  await petstore.kill(how === "one process" ? "gateway" : "pet", "SIGKILL");
  await petstore.stop();

  const files = readdirSync(backup);
  expect(files).toHaveLength(6);
  for (const name of files) expect(statSync(join(backup, name)).mode & 0o777).toBe(0o600);
  expect(await data(["verify", backup], env)).toMatchObject({ code: 0 });
  const restored = join(of, "restored");
  expect(await data(["restore", backup, "--store", restored], env)).toMatchObject({ code: 0 });
  expect(await data(["import", join(of, "all.jsonl"), "--store", join(of, "imported")], env)).toMatchObject({
    code: 0,
  });
  const nowhere = join(of, "nowhere", "all.jsonl");
  expect(await data(["export", nowhere, "--store", restored], env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("ENOENT"),
  });
  expect(readdirSync(of).toSorted()).toEqual(["all.jsonl", "backup", "imported", "restored"]);
  const state = await readState({ store: { dataDir: restored, mongodbUri: undefined } });
  const stored = { categories: state.categories, pets: state.pets, orders: state.orders };

  const isThere = ({ kind, id }: Answered) => stored[kind].has(id);
  const earlier = answered.filter(({ at }) => at < Date.parse(instant));
  expect(earlier.length).toBeGreaterThan(5 * CLIENTS);
  expect(earlier.filter((one) => !isThere(one))).toEqual([]);
  // No cut between two files: what a client did before something that is there, is there, too.
  const byClient = Map.groupBy(answered, ({ client }) => client);
  expect(
    [...byClient.values()].filter((all) => all.slice(0, all.findLastIndex(isThere) + 1).some((one) => !isThere(one))),
  ).toEqual([]);
  expect(answered.some((one) => !isThere(one))).toBe(true);

  await using again = await startPetstore({ dataDir: restored });
  const category = await post(again, "/categories", { name: "after" });
  const pet = await post(again, "/pets", { name: "after", categoryId: category.id });
  const order = await post(again, "/store/orders", { petId: pet.id });
  for (const [kind, one] of Object.entries({ categories: category, pets: pet, orders: order }))
    expect(one.id).toBeGreaterThan(Math.max(...answered.filter((each) => each.kind === kind).map(({ id }) => id)));
  if (how === "one process") return;
  const unfinished = async () => (await Promise.all(serviceNames.map((name) => unfinishedIn(again, name)))).flat();
  await expect.poll(unfinished, { timeout: 60_000 }).toEqual([]);
  expect(await wrongInTheStores(again)).toEqual([]);
});

test("what can't be looked at, and what is not understood, is 2; --help is 0", { timeout }, async () => {
  const DATA_DIR = join(dir, "none");
  expect(await data(["--help"], {})).toMatchObject({ code: 0, stdout: expect.stringContaining("backup DIR") });
  expect(await data([], {})).toMatchObject({ code: 2, stderr: expect.stringContaining("backup DIR") });
  expect(await data(["backup"], {})).toMatchObject({ code: 2 });
  expect(await data(["backup", "x", "--nonsense"], {})).toMatchObject({ code: 2 });
  expect(await data(["copy"], {})).toMatchObject({ code: 2 });
  expect(await data(["backup", join(dir, "b"), "--store", "http://x"], {})).toMatchObject({ code: 2 });
  expect(await data(["backup", join(dir, "b")], { DATA_DIR })).toMatchObject({ code: 1 });
  expect(await data(["import", join(dir, "nothing.jsonl")], { DATA_DIR })).toMatchObject({ code: 2 });
  expect(existsSync(DATA_DIR)).toBe(false);
  const nobody = { MONGODB_URI: "mongodb://127.0.0.1:1/?replicaSet=x&serverSelectionTimeoutMS=500" };
  expect(await data(["backup", join(dir, "b")], nobody)).toMatchObject({ code: 2 });
});

test("an export that is interrupted leaves nothing behind", { timeout }, async () => {
  const of = join(dir, "interrupted");
  const DATA_DIR = join(of, "data");
  using _ = takeDirectory(DATA_DIR, "a test");
  const files = serviceNames.map((service) => join(DATA_DIR, fileOf(service)));
  for (const file of files) writeFileSync(file, "");
  const held = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    const { step } = (await json(request)) as { step: string };
    if (step === "begin") response.end(JSON.stringify({ token: "t", files }));
    else held.resolve(); // and answers nothing
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => server.closeAllConnections());
  onTestFinished(() => void server.close());
  const ADMIN_PORT = `${(server.address() as AddressInfo).port}`;
  const env = { PATH: process.env.PATH, DATA_DIR, ADMIN_PORT };
  const child = execFile(process.execPath, [join(root, "backup/main.ts"), "export", join(of, "all.jsonl")], { env });
  const ended = once(child, "exit");
  await held.promise;
  expect(readdirSync(of)).toEqual([expect.stringMatching(/^\.export-/), "data"]);
  child.kill("SIGTERM");
  expect(await ended).toEqual([143, null]);
  expect(readdirSync(of)).toEqual(["data"]);
});

test("one whose processes have no admin port says what to do", { timeout }, async () => {
  const DATA_DIR = join(dir, "quiet");
  await using petstore = await startPetstore({ dataDir: DATA_DIR });
  const env = { DATA_DIR, PORT_BASE: new URL(petstore.http).port };
  expect(await data(["backup", join(dir, "b2")], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no process of the petstore answers at an admin port/),
  });
  expect(await data(["restore", join(dir, "b2")], env)).toMatchObject({ code: 1 });
});
