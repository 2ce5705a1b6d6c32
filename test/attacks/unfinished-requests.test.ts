/** Requests that are begun by the thousand and never end: memory stays bounded, and others are served afterwards. */
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, test } from "vitest";
import { envelope } from "../../packages/rpc/fixtures/envelope.ts";
import { END_HEADERS, type Field, headers, streams } from "../../packages/rpc/fixtures/frames.ts";
import { type Attack, type Attacked, type Flood, startAttacked, type Target, timeout } from "./flood.ts";
import { begin, data, fields, http1Chunked, LIST } from "./requests.ts";

let attacked: Attacked;
beforeAll(async () => {
  attacked = await startAttacked();
}, timeout);
afterAll(() => attacked?.[Symbol.asyncDispose]());

const MiB = 2 ** 20;
const json = "application/json";
const POST: Record<Target, string> = { gateway: "/categories", pet: LIST };

/** Requests on every stream that a connection may have, each with the beginning of a body. */
const begun = (path: string, type: string, body: Buffer = Buffer.alloc(0), more: readonly Field[] = []) =>
  Buffer.concat([
    begin,
    ...streams(100).flatMap((stream) => [
      headers(stream, [...fields("POST", path, type), ...more], END_HEADERS),
      ...(body.length > 0 ? [data(stream, body)] : []),
    ]),
  ]);
const piece = Buffer.concat(streams(100).map((stream) => data(stream, " ")));

/** Sends so many bytes on each stream as the server takes, over a client that keeps to its windows. */
const upload =
  (sessions: number, path: string, type: string, bytes: Buffer, more: Record<string, string> = {}) =>
  async (flood: Flood) => {
    for (let i = 0; i < sessions; i++) {
      const createConnection = () => connect({ port: flood.port, host: "127.0.0.1", localAddress: flood.from() });
      const session = connectHttp2(`http://127.0.0.1:${flood.port}`, { createConnection }).on("error", () => {});
      flood.defer(() => session.destroy());
      for (let stream = 0; stream < 100; stream++) {
        const asked = session.request({
          ":method": "POST",
          ":path": path,
          "content-type": type,
          te: "trailers",
          ...more,
        });
        asked
          .on("error", () => {})
          .resume()
          .write(bytes);
      }
    }
  };

const trickling = (which: Target): Attack[] => [
  [
    "heads that come byte by byte",
    async (flood) => {
      const head = `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(15_000)}`;
      await flood.connect(450, (socket) => socket.write(head));
      await flood.repeat(20, (socket) => socket.write("y"));
    },
  ],
  [
    "bodies in tiny chunks, over HTTP/1.1",
    async (flood) => {
      await flood.connect(450, (socket) => socket.write(http1Chunked(`POST ${POST[which]}`, json)));
      const chunks = "1\r\n \r\n".repeat(500);
      await flood.repeat(20, (socket) => socket.write(chunks));
    },
  ],
  [
    "bodies byte by byte, over HTTP/2",
    async (flood) => {
      const bytes = begun(POST[which], json);
      await flood.connect(200, (socket) => socket.write(bytes));
      await flood.repeat(20, (socket) => socket.write(piece));
    },
  ],
  [
    "requests with 15 KB of header fields, over HTTP/2",
    (flood) => {
      const large = Array.from({ length: 4 }, (_, i): Field => [`x-${i}`, "y".repeat(3700)]);
      const bytes = begun(POST[which], json, undefined, large);
      return flood.connect(100, (socket) => socket.write(bytes));
    },
  ],
  ["bodies of 64 KiB that lack a byte, over HTTP/2", upload(100, POST[which], json, Buffer.alloc(64 * 1024 - 1, " "))],
];

const announced = envelope(Buffer.alloc(0), { length: MiB });
const almost = Buffer.concat([announced, Buffer.alloc(MiB - 1)]);
const head = (type: string, more: string) =>
  Buffer.from(`POST ${LIST} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\n${more}\r\n`);
const plain = `content-length: ${MiB}\r\n`;
const inChunks = "transfer-encoding: chunked\r\n";
const chunk = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
const over1 = (bytes: Buffer) => (flood: Flood) => flood.connect(450, (socket) => socket.write(bytes));

/** At both ports: the gateway takes RPCs, too. */
const messages: Attack[] = [
  ["announced, Connect", over1(head(json, plain))],
  ["announced, gRPC-Web", over1(Buffer.concat([head("application/grpc-web+proto", inChunks), chunk(announced)]))],
  ["sent but for a byte, Connect", over1(Buffer.concat([head(json, plain), Buffer.alloc(MiB - 1, " ")]))],
  [
    "sent but for a byte, Connect in chunks",
    over1(Buffer.concat([head(json, inChunks), chunk(Buffer.alloc(MiB - 1, " "))])),
  ],
  [
    "sent but for a byte, gRPC-Web",
    over1(Buffer.concat([head("application/grpc-web+proto", inChunks), chunk(almost)])),
  ],
];
const grpc = begun(LIST, "application/grpc", announced);
const atService: Attack[] = [
  ["announced, gRPC", (flood) => flood.connect(200, (socket) => socket.write(grpc))],
  ["sent but for a byte, gRPC", upload(20, LIST, "application/grpc", almost)],
  ["sent but for a byte, Connect over HTTP/2", upload(20, LIST, json, Buffer.alloc(MiB - 1, " "))],
];

describe.each<Target>(["gateway", "pet"])("at %s", (which) => {
  describe("requests without end", () => {
    test.for(trickling(which))("%s", { timeout }, async ([, attack], { annotate }) => {
      await annotate(await attacked.survives(which, attack));
    });
  });

  describe("messages of 1 MiB", () => {
    test.for(which === "pet" ? [...messages, ...atService] : messages)(
      "%s",
      { timeout },
      async ([, attack], { annotate }) => {
        await annotate(await attacked.survives(which, attack));
      },
    );
  });
});

describe("compressed messages", () => {
  const zipped = (size: number) => envelope(gzipSync(Buffer.alloc(size)), { flags: 1 });
  test.for<[string, Buffer, number]>([
    ["of 1 MiB", zipped(MiB - 100), 50],
    ["of 64 MiB", zipped(64 * MiB), 10],
  ])("%s, whose requests go on", { timeout }, async ([, bytes, sessions], { annotate }) => {
    const flood = upload(sessions, LIST, "application/grpc", bytes, { "grpc-encoding": "gzip" });
    await annotate(await attacked.survives("pet", flood));
  });
});
