/** A process with a small heap outlives requests that are opened and never end, and serves others meanwhile. */
import { connect } from "node:net";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { run } from "../../runtime/fixtures/run.ts";
import { END_HEADERS, FrameType, frame, headerBlock, rawHttp2, streams } from "../fixtures/frames.ts";

const script = join(import.meta.dirname, "../fixtures/small-service.ts");
/** Some 20 MB are the process' own, 64 MB what requests may take. */
const HEAP_MB = 160;
const PATH = "/petstore.category.v1.CategoryService/CreateCategory";

const begin = headerBlock([
  [":method", "POST"],
  [":scheme", "http"],
  [":path", PATH],
  [":authority", "a"],
  ["te", "trailers"],
  ["content-type", "application/grpc"],
]);
/** A field that is kept in HPACK's table (RFC 7541 section 6.2.1), and named by one byte afterwards. */
const kept = Buffer.concat([Buffer.of(0x40), headerBlock([["x", "y".repeat(3900)]]).subarray(1)]);
const again = 0x80 | 62;
const requests = streams(100);
const open = (stream: number, payload: Buffer) =>
  frame({ type: FrameType.HEADERS, flags: END_HEADERS, stream, payload: Buffer.concat([begin, payload]) });

const attacks: readonly [string, number, (port: number) => void][] = [
  ["HTTP/2 requests", 60, (port) => rawHttp2(port).send(...requests.map((stream) => open(stream, Buffer.alloc(0))))],
  [
    "HTTP/2 requests with 15 KB of header fields",
    60,
    (port) =>
      rawHttp2(port).send(...requests.map((stream) => open(stream, Buffer.concat([kept, Buffer.alloc(3, again)])))),
  ],
  [
    "HTTP/2 requests whose bodies come byte by byte, from a client that reads nothing",
    60,
    (port) => {
      const piece = (stream: number) => frame({ type: FrameType.DATA, stream, payload: Buffer.alloc(1) });
      const { send } = rawHttp2(port, { reads: false });
      send(...requests.flatMap((stream) => [open(stream, kept), ...Array.from({ length: 20 }, () => piece(stream))]));
    },
  ],
  [
    "HTTP/1.1 requests whose bodies come byte by byte",
    400,
    (port) => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      onTestFinished(() => void socket.destroy());
      const head = `POST ${PATH} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
      socket.write(head + "1\r\n \r\n".repeat(3000));
    },
  ],
];

test.each(attacks)("%s", async (_, connections, attack) => {
  await using service = run([`--max-old-space-size=${HEAP_MB}`, script]);
  const port = Number((await service.printed(/listens on (\d+)/))[1]);
  const nodeOptions = { createConnection: () => connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" }) };
  const baseUrl = `http://127.0.0.1:${port}`;
  const others = createClient(CategoryService, createConnectTransport({ baseUrl, httpVersion: "2", nodeOptions }));
  const ended = service.ended.then(() => expect.fail(`the process ended:\n${service.output()}`));
  ended.catch(() => {});
  const asked = async () => (await Promise.race([others.getCategory({ categoryId: 1n }), ended])).category?.name;
  for (let i = 0; i < connections; i++) {
    attack(port);
    if (i % 10 === 0) expect(await asked()).toBe("dog");
  }
  for (let i = 0; i < 20; i++) expect(await asked()).toBe("dog");
  expect([service.process.exitCode, service.process.signalCode]).toEqual([null, null]);
});
