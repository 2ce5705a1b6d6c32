import { once } from "node:events";
import { connect, constants, createServer, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { Code, type ConnectError } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { envelope } from "../fixtures/envelope.ts";
import { limitUnpacked, readMessage, UNPACKED_AT_A_TIME } from "./message-limit.ts";

const LIMIT = 300;
const message = (bytes: number): Buffer => envelope(Buffer.alloc(bytes, "x"));
const pieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
const read = (chunks: Buffer[], contentType: string, announced?: number) =>
  readMessage(Readable.from(chunks, { objectMode: false }), contentType, LIMIT, errors, announced);
const TOO_LARGE = "The message is larger than 300 bytes.";

describe.each([1, 3, 7, 1000])("in chunks of %i", (size) => {
  test.each(["application/grpc", "application/grpc+proto", "application/grpc-web", "application/connect+json"])(
    "%s: the message counts without its prefix",
    async (type) => {
      expect(await read(pieces(message(LIMIT), size), type)).toEqual(message(LIMIT));
      await expect(read(pieces(message(LIMIT + 1), size), type)).rejects.toThrow(TOO_LARGE);
    },
  );

  test.each(["application/proto", "application/json", ""])("%s: the body is the message", async (type) => {
    expect(await read(pieces(Buffer.alloc(LIMIT), size), type)).toHaveLength(LIMIT);
    await expect(read(pieces(Buffer.alloc(LIMIT + 1), size), type)).rejects.toThrow(TOO_LARGE);
  });
});

test.each(["application/proto", "application/grpc"])(
  "%s: over HTTP/2 a request that breaks off is no message",
  async (type) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(() => {
      session.destroy();
      server.close();
    });
    const stream = session.request({ ":method": "POST", "content-type": type });
    stream.on("error", () => {});
    stream.write(message(LIMIT).subarray(0, 9));
    const [request] = (await once(server, "request")) as [Http2ServerRequest];
    stream.close(constants.NGHTTP2_CANCEL);
    await once(request, "aborted");
    const bytes = readMessage(request, type, LIMIT, errors);
    expect(
      await bytes.then(
        () => "a message",
        ({ code }: ConnectError) => code,
      ),
    ).toBe(Code.Canceled);
  },
);

test("a message that is announced as too large is refused before it comes, and by its prefix where it never does", async () => {
  const never = new Readable({ read() {} });
  await expect(readMessage(never, "application/json", LIMIT, errors, LIMIT + 1)).rejects.toThrow(TOO_LARGE);
  await expect(read([message(2 ** 20).subarray(0, 5)], "application/grpc")).rejects.toThrow(TOO_LARGE);
});

test("what follows a refused message is read and dropped", async () => {
  const source = Readable.from(pieces(message(10_000), 100), { objectMode: false });
  await expect(readMessage(source, "application/grpc", LIMIT, errors)).rejects.toThrow();
  await expect.poll(() => source.readableEnded).toBe(true);
});

test("few messages are unpacked at a time, and all in the end, whether or not one fails", async () => {
  let [unpacking, most] = [0, 0];
  const { decompress } = limitUnpacked(errors)({
    name: "test",
    compress: async (bytes) => Uint8Array.from(bytes),
    async decompress(bytes) {
      most = Math.max(most, ++unpacking);
      await new Promise(setImmediate);
      unpacking--;
      if (bytes.length % 2 === 1) throw new Error("no");
      return Uint8Array.from(bytes);
    },
  });
  const sizes = Array.from({ length: 50 }, (_, i) => i);
  const results = await Promise.allSettled(sizes.map((size) => decompress(new Uint8Array(size), LIMIT)));
  expect(results.map(({ status }) => status)).toEqual(sizes.map((i) => (i % 2 === 1 ? "rejected" : "fulfilled")));
  expect(most).toBe(UNPACKED_AT_A_TIME);
});
