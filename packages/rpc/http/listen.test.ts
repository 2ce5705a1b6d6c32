import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { acceptWaiting, BACKLOG, ListenError, listen } from "./listen.ts";

const host = "127.0.0.1";

test("a port that is taken is refused in one line with the operator's advice", async () => {
  await using taken = createServer();
  const port = await listen(taken, { host, port: 0 });
  const advice = (code: string, host: string, port: number) => `${code} of ${host} and ${port}.`;
  const error = await listen(createServer(), { host, port }, advice).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as Error).message).toBe(`Can't listen on 127.0.0.1:${port}: EADDRINUSE of 127.0.0.1 and ${port}.`);
});

test("an error without advice is left as it is", async () => {
  await using taken = createServer();
  const port = await listen(taken, { host, port: 0 });
  const none = () => undefined;
  await expect(listen(createServer(), { host, port }, none)).rejects.toMatchObject({ code: "EADDRINUSE" });
  await expect(listen(createServer(), { host, port })).rejects.toMatchObject({ code: "EADDRINUSE" });
});

test("connections that wait when a server is to be closed are accepted", async () => {
  const server = createServer();
  let accepted = 0;
  server.on("connection", (socket) => accepted++ && socket.destroy());
  const port = await listen(server, { host, port: 0 });
  const sockets = Array.from({ length: 50 }, () => connect(port, host).on("error", () => {}));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  expect(accepted).toBeLessThan(50); // or nobody waits
  await acceptWaiting(server);
  server.close();
  expect(accepted).toBe(50);
});

const SYSTEM_LIMIT = "/proc/sys/net/core/somaxconn";
const allowed = existsSync(SYSTEM_LIMIT) ? Number(readFileSync(SYSTEM_LIMIT, "utf8")) : 0;
if (allowed < BACKLOG)
  process.stderr.write(
    `NOT RUN: a thousand connections that wait. The system lets ${allowed} wait, ${BACKLOG} are needed (${SYSTEM_LIMIT}).\n`,
  );
const COUNT = 1000;
test.skipIf(allowed < BACKLOG)("a thousand connections wait to be accepted, and none is turned away", async () => {
  const busy = new Worker(new URL("../fixtures/listens-and-sleeps.ts", import.meta.url));
  onTestFinished(async () => void (await busy.terminate()));
  const [port] = await once(busy, "message");
  const sockets = Array.from({ length: COUNT }, () => connect(port, host));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
});
