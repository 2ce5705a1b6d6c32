import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { realTime } from "@petstore/runtime/clock";
import { openStore } from "@petstore/store/open";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { INVENTORY } from "./inventory/model.ts";
import { open, update } from "./inventory/rules.ts";

/** Where somebody listens, and how often somebody came. */
async function listener() {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

/** Data of an inventory service that ended before it published a status. */
async function dataWithPendingStatus(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), "petstore-"));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const options = { ...realTime, log: pino({ level: "silent" }), onFatal: () => expect.unreachable() };
  const store = await openStore({ dataDir, service: "inventory" }, options);
  const entries = await store.collection(INVENTORY);
  for (const decide of [open(1, "sold"), update(1n, { quantity: 5 }, {})]) await entries.update<unknown>(1, decide);
  expect(await entries.get(1)).toMatchObject({ pending: true });
  await store.close();
  return dataDir;
}

test("one that is refused its port has called nobody: where it would be, there may be another petstore", async () => {
  const [taken, pet] = [await listener(), await listener()];
  const child = spawn(process.execPath, ["services/main.ts", "inventory"], {
    env: {
      PATH: process.env.PATH,
      INTERNAL_SECRET: "a-secret-of-the-petstore-under-test",
      DATA_DIR: await dataWithPendingStatus(),
      PORT: `${taken.port}`,
      PET_URL: `http://127.0.0.1:${pet.port}`,
      ORDER_URL: `http://127.0.0.1:${pet.port}`,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = text(child.stderr);
  expect(await once(child, "exit")).toEqual([1, null]);
  expect(await said).toContain(`port ${taken.port} is taken`);
  expect(pet.connections()).toBe(0);
});
