/** A replica set that asks who calls, made as docker-compose.yml makes it, with a user for each service. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ServiceName, serviceNames } from "../processes/names.ts";
import { freePorts, mongodMissing, startMongod } from "../test/harness/mongod.ts";
import { type Petstore, startPetstore } from "../test/harness/petstore.ts";

const services = serviceNames;
const execute = promisify(execFile);
const timeout = 240_000;

describe.skipIf(mongodMissing)("a MongoDB with users", () => {
  const directory = mkdtempSync(join(tmpdir(), "users-"));
  const secrets = join(directory, "secrets");
  const fileOf = (user: string) => join(secrets, user, "mongodb-uri");
  const uriOf = (user: string) => readFileSync(fileOf(user), "utf8").trim();
  const stack = new AsyncDisposableStack();
  let servers = "";

  const makeSecrets = () => execute(process.execPath, ["scripts/make-secrets.ts", secrets, servers]);
  const setUp = () =>
    execute(process.execPath, ["scripts/initiate-replica-set.ts", ...services.map(fileOf)], {
      env: { MONGODB_URI_FILE: fileOf("admin") },
      timeout: 120_000,
    });
  const as = async <T>(user: string, ask: (client: MongoClient) => Promise<T>): Promise<T> => {
    await using client = new MongoClient(uriOf(user));
    return await ask(client);
  };
  const databaseOf = (name: ServiceName) => `petstore_${name}`;

  beforeAll(async () => {
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    const key = join(directory, "key");
    writeFileSync(key, "a key that members of the set share", { mode: 0o600 });
    const ports = await freePorts(3);
    servers = `mongodb://${ports.map((port) => `127.0.0.1:${port}`).join(",")}/?replicaSet=petstore`;
    for (const port of ports) {
      const args = ["--replSet", "petstore", "--keyFile", key];
      const server = await startMongod({ port, dir: join(directory, `${port}`), args });
      stack.defer(() => server.stop());
    }
    await makeSecrets();
    const { stdout } = await setUp();
    expect(stdout.match(/^made the user \w+$/gm)).toHaveLength(1 + services.length);
  }, timeout);
  afterAll(() => stack.disposeAsync());

  test("secrets are made once, and only their owner can read them", async () => {
    const before = ["admin", ...services].map(uriOf);
    expect(new Set(before).size).toBe(before.length);
    expect(statSync(fileOf("pet")).mode & 0o777).toBe(0o400);
    expect((await makeSecrets()).stdout).toBe("");
    expect(["admin", ...services].map(uriOf)).toEqual(before);
  });

  test("a second start changes nothing, and gives a service the password that it has now", { timeout }, async () => {
    const config = () => as("admin", (client) => client.db("admin").command({ replSetGetConfig: 1 }));
    const before = await config();
    expect(before.config.members.map(({ priority }: { priority: number }) => priority)).toEqual([1, 1, 1]);
    // Another member is the primary now, and the first one can make nobody.
    await as("admin", (client) => client.db("admin").command({ replSetStepDown: 120, force: true }));
    rmSync(fileOf("order"));
    await makeSecrets();
    await expect(as("order", (client) => client.db("admin").command({ ping: 1 }))).rejects.toThrow(
      "Authentication failed",
    );
    expect((await setUp()).stdout).not.toContain("made the user");
    await as("order", (client) => client.db(databaseOf("order")).command({ find: "orders", limit: 1 }));
    // An election, and no other configuration.
    expect((await config()).config).toEqual({ ...before.config, term: expect.any(Number) });
  });

  test("another password of the admin's is told, and nothing is waited for", { timeout }, async () => {
    const path = join(directory, "other");
    writeFileSync(path, uriOf("admin").replace(/:[\da-f]{64}@/, ":planted-password@"));
    const other = execute(process.execPath, ["scripts/initiate-replica-set.ts"], { env: { MONGODB_URI_FILE: path } });
    await expect(other).rejects.toThrow(/has another password for the user in MONGODB_URI(?![\s\S]*planted-password)/);
  });

  test("nobody without a user reads anything", async () => {
    await using client = new MongoClient(servers);
    await expect(client.db(databaseOf("pet")).collection("pets").findOne()).rejects.toThrow(/requires authentication/);
  });

  describe("the petstore on it", () => {
    let petstore: Petstore;
    beforeAll(async () => {
      const own = Object.fromEntries(services.map((name) => [name, { MONGODB_URI: uriOf(name) }]));
      petstore = await startPetstore({ services: own, replicas: 1 });
    }, timeout);
    afterAll(() => petstore?.stop());

    const ask = async (method: string, path: string, body?: object) => {
      const headers = { ...(body && { "content-type": "application/json" }) };
      const answer = await fetch(petstore.http + path, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      return answer.status;
    };

    test("has all the rights that it needs", { timeout }, async () => {
      const sell = async () => [
        await ask("POST", "/categories", { name: "dogs" }),
        await ask("POST", "/pets", { name: "Rex", categoryId: 1 }),
        await ask("POST", "/store/orders", { petId: 1 }),
        await ask("PATCH", "/store/orders/1", { complete: true }),
        await ask("PUT", "/store/inventory/1", { quantity: 10 }),
        await ask("GET", "/pets?status=available"),
        await ask("GET", "/store/inventory?status=available"),
        await ask("POST", "/store/orders", {}),
        await ask("DELETE", "/store/orders/2"),
      ];
      const failing = async () => (await (await fetch(`${petstore.http}/readyz`)).json()).failing;
      expect(await sell()).toEqual([201, 201, 201, 200, 200, 200, 200, 201, 204]);
      // On a busy machine a service may not have answered one look in time.
      await expect.poll(failing).toEqual([]);
      expect(await ask("DELETE", "/pets/1")).toBe(204);
      expect(await ask("DELETE", "/categories/1")).toBe(204);
      for (const name of services) await petstore.kill(name);
      for (const name of services) await petstore.start(name, { MONGODB_URI: uriOf(name) });
      await expect.poll(failing).toEqual([]);
      expect(await ask("GET", "/store/orders")).toBe(200);
      expect(petstore.logs()).not.toMatch(/not authorized/i);
    });

    test.each(services)("%s can read and write its own database and no other", async (name) => {
      await as(name, async (client) => {
        expect((await client.db(databaseOf(name)).collections()).length).toBeGreaterThan(0);
        for (const other of [...services.filter((each) => each !== name).map(databaseOf), "admin", "local", "config"]) {
          const db = client.db(other);
          await expect(db.collection("pets").findOne(), other).rejects.toThrow(/not authorized/);
          await expect(db.collection("new").insertOne({}), other).rejects.toThrow(/not authorized/);
        }
        const admin = client.db("admin");
        const more = { createUser: "eve", pwd: "eve", roles: ["root"] };
        for (const command of [
          more,
          { replSetGetConfig: 1 },
          { shutdown: 1 },
          { grantRolesToUser: name, roles: ["root"] },
        ])
          await expect(admin.command(command)).rejects.toThrow(/not authorized/);
      });
    });
  });
});
