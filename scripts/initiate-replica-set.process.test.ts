/** On real servers. Without a mongod it is skipped, and the run says so in its last lines. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MongoClient } from "mongodb";
import { afterAll, expect, test } from "vitest";
import { freePorts, mongodMissing, startMongod } from "../test/harness/mongod.ts";

const dir = mkdtempSync(join(tmpdir(), "initiate-"));
const stack = new AsyncDisposableStack();
stack.defer(() => rmSync(dir, { recursive: true, force: true }));
afterAll(() => stack.disposeAsync());

const script = "scripts/initiate-replica-set.ts";

test.skipIf(mongodMissing)(
  "servers become a replica set, once, when the last of them is there",
  async () => {
    const ports = await freePorts(3);
    const uri = `mongodb://${ports.map((port) => `127.0.0.1:${port}`).join(",")}/?replicaSet=petstore`;
    const start = async (port = 0) => {
      const server = await startMongod({ port, dir: join(dir, `${port}`), args: ["--replSet", "petstore"] });
      stack.defer(() => server.stop());
    };
    const run = () => {
      const child = spawn(process.execPath, [script], {
        env: { MONGODB_URI: uri },
        stdio: ["ignore", "pipe", "inherit"],
      });
      stack.defer(() => void child.kill("SIGKILL"));
      const said: string[] = [];
      child.stdout.setEncoding("utf8").on("data", (text) => said.push(text));
      return { child, said, ended: once(child, "exit") };
    };

    await Promise.all(ports.slice(0, 2).map(start));
    const first = run();
    await once(first.child.stdout, "data");
    expect(first.said.join("")).toMatch(/^waiting to initiate the replica set: /);
    await start(ports[2]);
    expect(await first.ended).toEqual([0, null]);
    expect(first.said.join("")).toContain("initiated the replica set petstore\n");
    const roles = await Promise.all(
      ports.map((port) => ask(`mongodb://127.0.0.1:${port}/?directConnection=true`, { hello: 1 })),
    );
    expect(roles.filter(({ isWritablePrimary }) => isWritablePrimary)).toHaveLength(1);
    const config = { version: 1, members: ports.map((port) => ({ host: `127.0.0.1:${port}` })) };
    expect(await ask(uri, { replSetGetConfig: 1 })).toMatchObject({ config });

    const second = run();
    expect(await second.ended).toEqual([0, null]);
    expect(second.said.join("")).not.toContain("initiated");
    expect(await ask(uri, { replSetGetConfig: 1 })).toMatchObject({ config });
  },
  180_000,
);

test("an address that names no replica set is refused", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const env = { MONGODB_URI: "mongodb://127.0.0.1:1/" };
  execFile(process.execPath, [script], { env }, (error, _, stderr) => resolve(`${error?.code} ${stderr}`));
  expect(await promise).toMatch(/^1 .*MONGODB_URI must name the replica set/s);
});

async function ask(uri: string, command: object) {
  await using client = new MongoClient(uri);
  return await client.db("admin").command({ ...command });
}
