/** Requests whose bodies come while they wait for their turn. */
import type { IncomingMessage } from "node:http";
import { connect, createServer, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { END_HEADERS, END_STREAM, type Field, FrameType, frame, headers, rawHttp2 } from "../fixtures/frames.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import { readingAhead } from "./turns.ts";

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
