/** `npm start` on MongoDB, as somebody sees it who has not got it right yet. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Run, run } from "../../packages/runtime/fixtures/run.ts";
import { freePorts as freePortBase } from "../harness/instances.ts";
import { ask, freePorts, mongodMissing, type ReplicaSet, startMongod, startReplicaSet } from "../harness/mongod.ts";
import { startOldMongod } from "../harness/old-mongod.ts";

const script = join(import.meta.dirname, "../../launcher/main.ts");
const timeout = 120_000;

const started = async (uri: string): Promise<Run> =>
  run([script], { MONGODB_URI: uri, PORT_BASE: `${await freePortBase()}`, PATH: process.env.PATH ?? "" });

/** The start must end by itself, with one line about MONGODB_URI and without a stack or the password. */
async function refusal(uri: string): Promise<string> {
  await using it = await started(uri);
  expect(await it.ended).toBe(1);
  const lines = it.output().split("\n");
  expect(it.output()).not.toMatch(/^ +at |hunter2/m);
  const [line = "", ...more] = lines.filter((text) => text.includes("MONGODB_URI"));
  expect(more).toEqual([]);
  return line;
}

test("a server that is too old is refused", { timeout }, async () => {
  using server = await startOldMongod();
  expect(await refusal(server.uri)).toMatch(
    /^The petstore can't start\. \w+: MONGODB_URI names a MongoDB that is too old: 6\.0 or newer is needed\.$/,
  );
});

describe.skipIf(mongodMissing)("with real servers", () => {
  test("a standalone server is refused", { timeout }, async () => {
    const [port = 0] = await freePorts(1);
    const server = await startMongod({ port, dir: join(tmpdir(), `mongod-${port}`) });
    try {
      expect(await refusal(`mongodb://127.0.0.1:${port}/`)).toMatch(
        /can't start\. \w+: MONGODB_URI names a standalone/,
      );
    } finally {
      await server.stop();
    }
  });

  test("a set that is not there yet is waited for, and people are told", { timeout }, async () => {
    const [port = 0] = await freePorts(1);
    const host = `127.0.0.1:${port}`;
    await using it = await started(`mongodb://${host}/?replicaSet=rs`);
    await it.printed(new RegExp(`^waiting for .*pet.* \\(MongoDB at ${host}: nothing answers there\\)$`, "m"));
    const dir = join(tmpdir(), `mongod-${port}`);
    const server = await startMongod({ port, dir, args: ["--replSet", "rs"] });
    try {
      await it.printed(
        new RegExp(`^waiting for .* \\(MongoDB at ${host}: the replica set is not initiated.*\\)$`, "m"),
      );
      await ask(host, { replSetInitiate: { _id: "rs", members: [{ _id: 0, host }] } });
      await it.printed(/The petstore is ready/);
      await it.printed(/Data is in MongoDB/);
      it.process.kill("SIGTERM");
      expect(await it.ended).toBe(0);
    } finally {
      await server.stop();
    }
  });

  describe("that ask who is there", () => {
    let dir: string;
    let set: ReplicaSet;
    const uriOf = (user: string, password: string) =>
      `${set.uri.replace("//", `//${user}:${password}@`)}&authSource=admin`;
    beforeAll(async () => {
      dir = await mkdtemp(join(tmpdir(), "petstore-"));
      const keyFile = join(dir, "key");
      await writeFile(keyFile, "a key that members of the set share", { mode: 0o600 });
      set = await startReplicaSet({ arguments: ["--keyFile", keyFile] });
      await createUsers(set);
    });
    afterAll(async () => {
      await set?.stop();
      await rm(dir, { recursive: true, force: true });
    });

    test("a wrong password is refused", { timeout }, async () => {
      expect(await refusal(uriOf("owner", "hunter2"))).toMatch(
        /can't start\. \w+: MONGODB_URI has a user name or a password that MongoDB does not accept\.$/,
      );
    });
    test("no password is refused", { timeout }, async () => {
      expect(await refusal(set.uri)).toMatch(/can't start\. \w+: MONGODB_URI names no user, and MongoDB asks for one/);
    });
    test("a user without rights is refused", { timeout }, async () => {
      expect(await refusal(uriOf("guest", "guest"))).toMatch(
        /can't start\. \w+: MONGODB_URI .*grant it the role readWrite/,
      );
    });
    test("a user with the right to the petstore's databases is enough", { timeout }, async () => {
      await using it = await started(uriOf("owner", "owner"));
      await it.printed(/The petstore is ready/);
    });
  });
});

/** The first user is made by whoever comes from the same machine. */
async function createUsers({ uri }: ReplicaSet): Promise<void> {
  const admin = { createUser: "root", pwd: "root", roles: ["root"] };
  const client = new MongoClient(uri);
  try {
    await client.db("admin").command(admin);
  } finally {
    await client.close();
  }
  const root = new MongoClient(uri.replace("//", "//root:root@"));
  const databases = ["pet", "category", "order", "inventory"].map((name) => `petstore_${name}`);
  try {
    const roles = databases.map((db) => ({ role: "readWrite", db }));
    await root.db("admin").command({ createUser: "owner", pwd: "owner", roles });
    await root.db("admin").command({ createUser: "guest", pwd: "guest", roles: [] });
  } finally {
    await root.close();
  }
}
