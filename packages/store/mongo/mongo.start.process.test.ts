/** Opening the store on MongoDB: what is waited for, and what is refused in one line. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as tick } from "node:timers/promises";
import { createServer } from "node:tls";
import { type Logger, pino } from "pino";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createAuthority } from "../../../scripts/certificates.ts";
import {
  freePorts,
  mongodMissing,
  type ReplicaSet,
  startMongod,
  startReplicaSet,
} from "../../../test/harness/mongod.ts";
import { openForTest, withDatabase } from "../fixtures/mongo.ts";
import { Corrupt, schema, UnusableServer } from "../port.ts";
import { checkServer, createClient } from "./connect.ts";

vi.mock("./connect.ts", async (load) => {
  const actual = await load<typeof import("./connect.ts")>();
  return { ...actual, createClient: vi.fn(actual.createClient) };
});

/** Opening must be refused with a single line that never repeats the password. */
async function refusal(uri: string): Promise<string> {
  const error = await openForTest(uri, "pet").then(
    (store) => store.close(),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UnusableServer);
  const { message } = error as Error;
  expect(message).toMatch(/^The connection string [^\n]*\.$/);
  expect(message).not.toContain("hunter2");
  return message;
}

/** A log of lines, and a promise of the first that matches. */
function listen() {
  const lines: string[] = [];
  const waiting: { pattern: RegExp; resolve: (line: string) => void }[] = [];
  const write = (text: string) => {
    lines.push(text);
    for (const { pattern, resolve } of waiting) if (pattern.test(text)) resolve(text);
  };
  const log: Logger = pino({ level: "info" }, { write });
  const line = (pattern: RegExp) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    waiting.push({ pattern, resolve });
    for (const text of lines) write(lines.shift() ?? text);
    return promise;
  };
  return { log, line };
}

test.each([
  "mongodb://",
  "mongodb://me:hunter2@",
  "mongodb://me:hunter2@localhost:99999",
  "mongodb://me:hun@ter2@localhost",
  "mongodb://localhost/?noSuchOption=1",
  "mongodb://localhost/?w=many&tls=perhaps",
  "mongodb://a,b/?directConnection=true",
])("%s is no connection string", async (uri) => {
  expect(await refusal(uri)).toMatch(/is not a connection string/);
});

test.each([
  ["tlsCAFile", "/nowhere/ca.pem", "ENOENT"],
  ["tlsCertificateKeyFile", "/nowhere/key.pem", "ENOENT"],
  ["tlsCRLFile", "/nowhere/revoked.pem", "ENOENT"],
  ["tlsCertificateKeyFile", "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n", "ENOENT"],
])("%s=%j is refused, not waited for, and not repeated", async (setting, path, code) => {
  const said = await refusal(`mongodb://me:hunter2@127.0.0.1:1/?tls=true&${setting}=${encodeURIComponent(path)}`);
  expect(said).toContain(`names a file for TLS that can't be read, with ${setting} (${code})`);
  expect(said).not.toContain(path);
});

test("a directory in place of a file for TLS is refused", async () => {
  const said = await refusal(`mongodb://127.0.0.1:1/?tls=true&tlsCAFile=${encodeURIComponent(tmpdir())}`);
  expect(said).toContain("can't be read, with tlsCAFile (EISDIR)");
});

test("a file for TLS that holds no PEM is refused, though nothing answers there", async () => {
  const said = await refusal(
    `mongodb://127.0.0.1:1/?tls=true&tlsCertificateKeyFile=${encodeURIComponent(import.meta.filename)}`,
  );
  expect(said).toMatch(/holds no PEM \(ERR_OSSL_PEM_NO_START_LINE\): see to tlsCertificateKeyFile/);
});

/** What is waited for, as soon as it is said in these words. */
async function waitedFor(uri: string, words = /waiting/): Promise<string> {
  const { log, line } = listen();
  const over = new Error("heard enough");
  const said = line(words);
  let isSaid = false;
  void said.then(() => (isSaid = true));
  const sleep = async () => {
    await tick();
    if (isSaid) throw over;
  };
  await expect(openForTest(uri, "pet", { log, sleep })).rejects.toBe(over);
  return said;
}

test("a server that is off is waited for as such, whatever becomes of all addresses of its name", async () => {
  const refused = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" });
  const connecting = vi.spyOn(net, "createConnection").mockImplementation(() => {
    const socket = new net.Socket();
    queueMicrotask(() => socket.destroy(refused));
    return socket;
  });
  try {
    expect(await waitedFor("mongodb://127.0.0.1:1/")).toContain("nothing answers there");
  } finally {
    connecting.mockRestore();
  }
});

test("what accepts connections and closes them is not said to answer", async () => {
  const server = net.createServer((socket) => socket.destroy());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  expect(await waitedFor(`mongodb://127.0.0.1:${port}/?tls=true`)).toContain("nothing answers there");
  server.close();
});

test("a server whose certificate can't be verified is waited for by that name", async () => {
  const [notBefore, notAfter] = [new Date(Date.now() - 86_400_000), new Date(Date.now() + 86_400_000)];
  const authority = await createAuthority("an authority", { notBefore, notAfter });
  const { cert, key } = await authority.issue({ names: ["127.0.0.1"], notBefore, notAfter });
  const server = createServer({ cert, key }, (socket) => socket.on("error", () => {}));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  // Not at once where the handshake takes longer than the driver waits for it.
  const said = await waitedFor(`mongodb://127.0.0.1:${port}/?tls=true`, /waiting.*TLS/);
  server.close();
  expect(said).toMatch(/it answers, but TLS fails \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\): see to its certificate/);
});

describe("a server", () => {
  const member = { setName: "rs", maxWireVersion: 17 };
  test("of 6.0 in a replica set, or a router before one, will do", () => {
    expect(() => checkServer(member)).not.toThrow();
    expect(() => checkServer({ maxWireVersion: 21, msg: "isdbgrid" })).not.toThrow();
  });
  test("that is older is refused", () => {
    expect(() => checkServer({ ...member, maxWireVersion: 16 })).toThrow(
      /^The connection string names a MongoDB that is too old: 6\.0/,
    );
  });
});

test.skipIf(mongodMissing)("a standalone server is refused; without its set's name or with one", async () => {
  const [port = 0] = await freePorts(1);
  const server = await startMongod({ port, dir: join(tmpdir(), `mongod-${port}`) });
  try {
    expect(await refusal(`mongodb://127.0.0.1:${port}`)).toMatch(/standalone.*--replSet.*rs\.initiate/);
    expect(await refusal(`mongodb://127.0.0.1:${port}/?replicaSet=rs`)).toMatch(/replica set rs.* no server/);
  } finally {
    await server.stop();
  }
});

test.skipIf(mongodMissing)(
  "a set that is not there, then not initiated, is waited for",
  { timeout: 120_000 },
  async () => {
    const [port = 0] = await freePorts(1);
    const { log, line } = listen();
    const host = `127.0.0.1:${port}`;
    const opening = openForTest(`mongodb://${host}/?replicaSet=rs`, "pet", { log });
    expect(await line(/waiting/)).toContain(`waiting for MongoDB at ${host}: nothing answers there`);
    const server = await startMongod({ port, dir: join(tmpdir(), `mongod-${port}`), args: ["--replSet", "rs"] });
    try {
      expect(await line(/initiate/)).toContain("the replica set is not initiated, run rs.initiate() there");
      const members = [{ _id: 0, host }];
      await withDatabase(`mongodb://${host}/?directConnection=true`, "admin", (db) =>
        db.command({ replSetInitiate: { _id: "rs", members } }),
      );
      const store = await opening;
      await store.ping();
      expect(await line(/is there/)).toBeDefined();
      await store.close();
    } finally {
      await server.stop();
      await rm(join(tmpdir(), `mongod-${port}`), { recursive: true, force: true });
    }
  },
);

describe.skipIf(mongodMissing)("on a replica set", () => {
  let set: ReplicaSet;
  beforeAll(async () => {
    set = await startReplicaSet({ arguments: ["--setParameter", "enableTestCommands=1"] });
  });
  afterAll(() => set?.stop());

  const admin = (command: object) => withDatabase(set.uri, "admin", (db) => db.command({ ...command }));

  test("a wrong password is refused", async () => {
    expect(await refusal(set.uri.replace("//", "//me:hunter2@"))).toMatch(/user name or a password/);
  });
  test("another name of the set is refused", async () => {
    expect(await refusal(set.uri.replace("=rs", "=other"))).toMatch(/replica set other.* no server/);
  });
  test("a user who may not write is refused", async () => {
    const data = { failCommands: ["findAndModify"], errorCode: 13, appName: "petstore" };
    await admin({ configureFailPoint: "failCommand", mode: "alwaysOn", data });
    try {
      expect(await refusal(set.uri)).toMatch(/names no user/);
    } finally {
      await admin({ configureFailPoint: "failCommand", mode: "off" });
    }
  });

  test("a database that MongoDB does not allow is refused", async () => {
    expect(await refusal(set.uri.replace("/?", "/pet%20store?"))).toMatch(/name MongoDB does not allow/);
    expect(await refusal(set.uri.replace("/?", `/${"x".repeat(64)}?`))).toMatch(/name MongoDB does not allow/);
    const store = await openForTest(set.uri.replace("/?", "/Zoo?"), "pet");
    await store.close();
    expect(await refusal(set.uri.replace("/?", "/zoo?"))).toMatch(/in capital letters/);
  });

  test("each service has a database of its own, named after the URI's", async () => {
    const stores = [
      await openForTest(set.uri, "pet"),
      await openForTest(set.uri, "order"),
      await openForTest(set.uri.replace("/?", "/shop?"), "pet"),
    ];
    for (const store of stores) expect(await store.nextId("ids")).toBe(1);
    for (const store of stores) await store.close();
    const { databases } = await admin({ listDatabases: 1, nameOnly: true });
    const names = databases.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(["petstore_order", "petstore_pet", "shop_pet"]));
  });

  test.each([
    ["newer", 4],
    ["older", 1],
  ])("data in the format of a %s petstore is left alone", async (age, format) => {
    await withDatabase(set.uri, `petstore_${age}`, (db) =>
      db.collection<{ _id: string; format: number }>("_petstore").insertOne({ _id: "format", format }),
    );
    await expect(openForTest(set.uri, age)).rejects.toMatchObject({
      name: "UnsupportedFormat",
      message: expect.stringMatching(new RegExp(`petstore_${age}.*${age} petstore`)),
    });
  });

  test("indexes hold what has all of their fields, are not unique, and are built once", async () => {
    const pets = schema<{ _id: number; rev: number; name: string; size: number }>()("pets", { both: ["name", "size"] });
    vi.mocked(createClient).mockClear();
    for (let i = 0; i < 2; i++) {
      const store = await openForTest(set.uri, "indexes");
      await store.collection(pets);
      await store.close();
    }
    expect(createClient, "to find out that they are there takes no client of its own").toHaveBeenCalledTimes(2);
    const indexes = await withDatabase(set.uri, "petstore_indexes", (db) => db.collection("pets").indexes());
    const present = { name: { $exists: true }, size: { $exists: true } };
    expect(indexes).toMatchObject([
      { key: { _id: 1 } },
      { key: { name: 1, size: 1, _id: 1 }, partialFilterExpression: present },
    ]);
    expect(indexes).toHaveLength(2);
    expect(indexes[1]).not.toHaveProperty("unique");
  });

  test.each([
    ["of another name", { name: 1, _id: 1 }, { name: "mine", partialFilterExpression: { name: { $exists: true } } }],
    ["of the same name", { other: 1 }, { name: "name_1__id_1" }],
  ])("an index %s that is in the way is named, not waited for", async (which, key, options) => {
    const pets = schema<{ _id: number; rev: number; name: string }>()("pets", { name: ["name"] });
    const service = which.replaceAll(" ", "_");
    await withDatabase(set.uri, `petstore_${service}`, (db) => db.collection("pets").createIndex(key, options));
    const store = await openForTest(set.uri, service);
    const error = await store.collection(pets).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Corrupt);
    expect((error as Error).message).toMatch(
      new RegExp(`^The collection pets of .*petstore_${service}.*${options.name}`),
    );
    expect((error as Error).message).not.toContain("\n");
    await store.close();
  });

  test("an index that is not built within the time of an answer is waited for", async () => {
    const pets = schema<{ _id: number; rev: number; name: string }>()("pets", { name: ["name"] });
    const data = { failCommands: ["createIndexes"], closeConnection: true, appName: "petstore" };
    await admin({ configureFailPoint: "failCommand", mode: { times: 1 }, data });
    const store = await openForTest(set.uri, "patience");
    await store.collection(pets);
    await store.close();
    const indexes = await withDatabase(set.uri, "petstore_patience", (db) => db.collection("pets").indexes());
    expect(indexes).toHaveLength(2);
  });
});
