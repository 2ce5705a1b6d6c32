import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { findMongod, freePorts, mongodMissing, startReplicaSet } from "./mongod.ts";

test("MONGOD names the program, and stands above the PATH", () => {
  expect(findMongod({ MONGOD: process.execPath, PATH: "/nowhere" })).toBe(process.execPath);
  expect(findMongod({ MONGOD: "/nowhere/mongod", PATH: process.env.PATH })).toBeUndefined();
});

test.skipIf(mongodMissing)("a member that was killed comes back with its data", async () => {
  await using set = await startReplicaSet();
  const member = await set.primary();
  member.signal("SIGKILL");
  await member.restart();
  expect(await set.primary()).toBe(member);
});

test.skipIf(mongodMissing)("a server ends with the process that started it, also when that is killed", async () => {
  const [port = 0] = await freePorts(1);
  const start = `
    const { startMongod } = await import(${JSON.stringify(join(import.meta.dirname, "mongod.ts"))});
    await startMongod({ port: ${port}, dir: ${JSON.stringify(join(tmpdir(), `mongod-${port}`))} });
    console.log("started");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", start], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  expect(await accepts(port)).toBe(true);
  child.kill("SIGKILL");
  // Never, and the test runs out of time.
  while (await accepts(port)) await sleep(50);
});

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  const accepted = await promise;
  socket.destroy();
  return accepted;
}
