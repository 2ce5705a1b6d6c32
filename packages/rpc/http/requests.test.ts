/** When requests begin. */
import type { IncomingMessage } from "node:http";
import { connect, createServer, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { END_HEADERS, END_STREAM, type Field, FrameType, frame, headers, rawHttp2 } from "../fixtures/frames.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import { createTurns, readingAhead } from "./requests.ts";

function started(atOnce: number) {
  const inTurn = createTurns(atOnce);
  const begun: number[] = [];
  const come = (...numbers: number[]) => new Map(numbers.map((i) => [i, inTurn(() => void begun.push(i))]));
  return { begun, come };
}

test("what comes alone begins at once", async () => {
  const { begun, come } = started(2);
  for (const i of [1, 2, 3]) {
    come(i);
    expect(begun.at(-1)).toBe(i);
    await nextTurn();
    await nextTurn();
  }
});

test("what comes together begins in order, and a few at a time", async () => {
  const { begun, come } = started(2);
  come(1, 2, 3, 4, 5, 6);
  const seen = [begun.length];
  for (let turn = 0; turn < 5; turn++) {
    await nextTurn();
    seen.push(begun.length);
  }
  expect(begun).toEqual([1, 2, 3, 4, 5, 6]);
  expect(seen).toEqual([1, 1, 3, 5, 6, 6]);
});

test("what comes meanwhile waits behind the others", async () => {
  const { begun, come } = started(2);
  come(1, 2, 3, 4);
  await nextTurn();
  come(5);
  for (let turn = 0; turn < 4; turn++) await nextTurn();
  expect(begun).toEqual([1, 2, 3, 4, 5]);
});

test("what is given up before its turn never begins, and takes no turn", async () => {
  const { begun, come } = started(2);
  const giveUp = come(1, 2, 3, 4, 5, 6);
  for (const i of [1, 2, 3]) giveUp.get(i)?.();
  await nextTurn();
  giveUp.get(4)?.();
  await nextTurn();
  expect(begun).toEqual([1, 5, 6]);
});

describe("requests whose bodies come while they wait for their turn", () => {
  const POST: readonly Field[] = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/"],
    [":authority", "localhost"],
  ];

  /**
   * Sends a body of so many bytes in frames of one byte, in one packet with the request and with another one before it that takes
   * the turn. Resolves to what had come when it began, and to what was read in all.
   */
  async function post(bytes: number) {
    const { promise, resolve } = Promise.withResolvers<{ atFirst: number; body: string }>();
    const read = async (request: IncomingMessage) => {
      const atFirst = request.readableLength;
      resolve({ atFirst, body: await text(request) });
    };
    const { port } = await startOnePort((request, response) => {
      if (request.method === "GET") return void response.end();
      return read(request);
    });
    const end = frame({ type: FrameType.DATA, flags: END_STREAM, stream: 3 });
    const pieces = Array.from({ length: bytes }, () =>
      frame({ type: FrameType.DATA, stream: 3, payload: Buffer.from("x") }),
    );
    rawHttp2(port).send(headers(1), headers(3, POST, END_HEADERS), ...pieces, end);
    return promise;
  }

  test.each([0, 1, 63, 64, 65, 1000])("a body of %i pieces arrives whole", async (bytes) => {
    expect((await post(bytes)).body).toBe("x".repeat(bytes));
  });

  test("one that comes in many pieces does not wait until it is there", async () => {
    expect((await post(63)).atFirst).toBe(63);
    expect((await post(1000)).atFirst).toBe(64);
  });

  test("one that fills the buffer does not wait for more", async () => {
    const begun = Promise.withResolvers<Http2ServerRequest>();
    const server = createServer((request) => {
      readingAhead(request as unknown as IncomingMessage, request.stream, () => begun.resolve(request));
    }).listen(0);
    onTestFinished(() => void server.close());
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(() => session.destroy());
    const body = "x".repeat(200_000);
    session.request({ ":method": "POST" }).end(body);
    expect(await text(await begun.promise)).toBe(body);
  });
});
