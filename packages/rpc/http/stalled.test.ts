import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { startOnePort } from "../fixtures/one-port.ts";
import { whenStalled } from "./unread.ts";

/** A response whose timer the test lets run out. */
function stub() {
  const socket = { bytesWritten: 1000, writableLength: 400, armed: 0, setTimeout: () => void socket.armed++ };
  let runOut = () => {};
  const response = {
    socket,
    get writableLength() {
      return socket.writableLength;
    },
    setTimeout: (_ms: number, listener: () => void) => (runOut = listener),
  };
  let now = 0;
  let isGivenUp = false;
  whenStalled(
    response as unknown as ServerResponse,
    500,
    () => (isGivenUp = true),
    () => now,
  );
  return {
    socket,
    /** How often it runs out, each time after `ms`, until the client is given up; undefined if it is not. */
    looks(most: number, ms: number): number | undefined {
      for (let i = 1; i <= most; i++) {
        now += ms;
        runOut();
        if (isGivenUp) return i;
      }
      return undefined;
    },
  };
}

test("an answer of which nothing is taken is given up after its time", () => {
  expect(stub().looks(10, 100)).toBe(5);
});

test("a late timer makes no difference", () => {
  expect(stub().looks(10, 170)).toBe(5);
});

test("where a write was taken the time begins anew", () => {
  const { socket, looks } = stub();
  expect(looks(4, 100)).toBeUndefined();
  socket.writableLength = 300;
  expect(looks(10, 100)).toBe(5);
});

test("where a part of one was taken, for which Node starts the timer over, it begins anew", () => {
  const { looks } = stub();
  expect(looks(4, 100)).toBeUndefined();
  expect(looks(1, 200)).toBeUndefined();
  expect(looks(10, 100)).toBe(4);
});

test("where nothing waits nobody looks again before the next write", () => {
  const { socket, looks } = stub();
  socket.writableLength = 0;
  expect(looks(10, 100)).toBeUndefined();
  expect(socket.armed).toBe(0);
});

test("a client that reads nothing is given up well before Node's own timer would say so", async () => {
  const writeMs = 1000;
  const page = Buffer.alloc(64 * 1024 * 1024); // more than the system keeps for a connection
  const given: string[] = [];
  const closing = (who: string, response: ServerResponse) =>
    new Promise<void>((resolve) =>
      response.once("close", () => {
        given.push(who);
        resolve();
      }),
    );
  const closed: Promise<void>[] = [];
  const byNode: RequestListener = (_, response) => {
    closed.push(closing("Node", response));
    response.setTimeout(writeMs, () => void response.destroy()).end(page);
  };
  const node = createServer(byNode).listen(0, "127.0.0.1");
  await once(node, "listening");
  onTestFinished(() => void node.close());
  const ours = await startOnePort(
    (_, response) => {
      closed.push(closing("ours", response));
      response.end(page);
    },
    { writeMs, waitingBytes: Number.POSITIVE_INFINITY },
  );
  for (const port of [(node.address() as AddressInfo).port, ours.port]) {
    await sleep(0.3 * writeMs); // its own timer takes twice the time, so this client would be the second one
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  }
  await expect.poll(() => closed.length).toBe(2);
  await Promise.all(closed);
  expect(given).toEqual(["ours", "Node"]);
});
