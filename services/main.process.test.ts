import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { realTime } from "@petstore/runtime/clock";
import { openStore } from "@petstore/store/open";
import { put } from "@petstore/store/port";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { ORDERS } from "./order/model.ts";
import { FORMAT } from "./resource/record.ts";

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

/** Data of an order service that ended while it cancelled an order. */
async function dataWithPendingOrder(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), "petstore-"));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const options = { ...realTime, log: pino({ level: "silent" }), onFatal: () => expect.unreachable() };
  const store = await openStore({ dataDir, service: "order" }, options);
  const orders = await store.collection(ORDERS);
  const order = { _id: 1, version: 1, state: "CANCELLING", visible: true, pending: true, format: FORMAT } as const;
  await orders.update(1, () => put({ ...order, petId: 1, quantity: 1, complete: false, completed: false }, undefined));
  await store.close();
  return dataDir;
}

test("one that is refused its port has called nobody: where it would be, there may be another petstore", async () => {
  const [taken, inventory] = [await listener(), await listener()];
  const child = spawn(process.execPath, ["services/main.ts", "order"], {
    env: {
      PATH: process.env.PATH,
      INTERNAL_SECRET: "a-secret-of-the-petstore-under-test",
      DATA_DIR: await dataWithPendingOrder(),
      PORT: `${taken.port}`,
      INVENTORY_URL: `http://127.0.0.1:${inventory.port}`,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = text(child.stderr);
  expect(await once(child, "exit")).toEqual([1, null]);
  expect(await said).toContain(`port ${taken.port} is taken`);
  expect(inventory.connections()).toBe(0);
});
