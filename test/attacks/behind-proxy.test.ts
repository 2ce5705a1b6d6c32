/** Floods of the proxy in examples/proxy from one address: whoever calls from another one does not notice. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { get } from "node:https";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { envelope } from "../../packages/rpc/fixtures/envelope.ts";
import { END_HEADERS, headers, reset, streams } from "../../packages/rpc/fixtures/frames.ts";
import { BEHIND_PROXY, nginxMissing, type OpenProxy, startProxy } from "../harness/nginx.ts";
import { type Attack, type Attacked, openFlood, startAttacked, timeout, watchOthers } from "./flood.ts";
import { begin, closedWindow, DOCS_PAGE, data, fields, http1, http1Chunked, http2, LARGE, LIST } from "./requests.ts";

const ATTACKER = "127.0.3.1";
const OTHER = "127.0.3.2";
const MiB = 2 ** 20;
const json = "application/json";

const many = (part: Buffer, count: number) => Buffer.concat(Array.from({ length: count }, () => part));
/** A request on each stream that a connection may have, each with the beginning of its body. */
const begun = Buffer.concat([
  begin,
  ...streams(100).flatMap((stream) => [
    headers(stream, fields("POST", "/categories", json), END_HEADERS),
    data(stream, "{"),
  ]),
]);
const announced = Buffer.concat([
  begin,
  ...streams(100).flatMap((stream) => [
    headers(stream, fields("POST", LIST, "application/grpc"), END_HEADERS),
    data(stream, envelope(Buffer.alloc(0), { length: MiB })),
  ]),
]);
const unread = Buffer.concat([
  closedWindow,
  ...streams(100).map((stream) => headers(stream, fields("GET", LARGE.gateway))),
]);
const over1 = { protocol: "http/1.1", reads: true } as const;

const attacks: Attack[] = [
  [
    "thousands of connections that send nothing",
    async (flood) => {
      for (let i = 0; i < 3000; i++) {
        const socket = connect({ port: flood.port, host: "127.0.0.1", localAddress: flood.from() });
        socket.on("error", () => {});
        flood.defer(() => socket.destroy());
      }
    },
  ],
  [
    "heads that come byte by byte",
    async (flood) => {
      const head = `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(15_000)}`;
      await flood.connect(1000, (socket) => socket.write(head), over1);
      await flood.repeat(40, (socket) => socket.write("y"));
    },
  ],
  [
    "bodies in tiny chunks, over HTTP/1.1",
    async (flood) => {
      await flood.connect(1000, (socket) => socket.write(http1Chunked("POST /categories", json)), over1);
      await flood.repeat(40, (socket) => socket.write("1\r\n \r\n".repeat(100)));
    },
  ],
  [
    "bodies byte by byte, over HTTP/2",
    async (flood) => {
      await flood.connect(500, (socket) => socket.write(begun), { reads: true });
      const piece = Buffer.concat(streams(100).map((stream) => data(stream, " ")));
      await flood.repeat(40, (socket) => socket.write(piece));
    },
  ],
  [
    "messages of 1 MiB that lack a byte",
    (flood) => {
      const head = `POST ${LIST} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${json}\r\ncontent-length: ${MiB}\r\n\r\n`;
      const almost = Buffer.concat([Buffer.from(head), Buffer.alloc(MiB - 1, " ")]);
      return flood.connect(200, (socket) => socket.write(almost), over1);
    },
  ],
  [
    "gRPC messages that are announced and not sent",
    (flood) => flood.connect(200, (socket) => socket.write(announced), { reads: true }),
  ],
  [
    "requests without end, over HTTP/1.1",
    async (flood) => {
      await flood.connect(200, (socket) => socket.write(http1(`GET ${LARGE.gateway}`)), over1);
      await flood.repeat(100, (socket) => socket.write(http1(`GET ${LARGE.gateway}`)));
    },
  ],
  [
    "20,000 requests on 200 sessions",
    (flood) => {
      const bytes = Buffer.concat([begin, http2("GET", LARGE.gateway, 100)]);
      return flood.connect(200, (socket) => socket.write(bytes), { reads: true });
    },
  ],
  [
    "thousands of pipelined requests",
    (flood) => flood.connect(200, (socket) => socket.write(many(http1(`GET ${LARGE.gateway}`), 1000)), over1),
  ],
  [
    "rapid reset",
    async (flood) => {
      await flood.connect(50, (socket) => socket.write(begin), { reads: true });
      await flood.repeat(40, (socket, round) => {
        const own = streams(100, 100 * round);
        const request = fields("GET", LARGE.gateway);
        socket.write(Buffer.concat(own.flatMap((stream) => [headers(stream, request), reset(stream)])));
      });
    },
  ],
  ["answers that nobody reads, over HTTP/2", (flood) => flood.connect(200, (socket) => socket.write(unread))],
  [
    "answers that nobody reads, over HTTP/1.1",
    (flood) => flood.connect(200, (socket) => socket.write(http1(`GET ${DOCS_PAGE}`)), { protocol: "http/1.1" }),
  ],
];

describe.skipIf(nginxMissing)("from one address", () => {
  let attacked: Attacked;
  let proxy: OpenProxy;
  beforeAll(async () => {
    attacked = await startAttacked({ env: BEHIND_PROXY });
    proxy = await startProxy(attacked.petstore);
  }, timeout);
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await attacked?.[Symbol.asyncDispose]();
  });

  /** Asks as somebody else does, over a connection of its own for each protocol. */
  async function ask(): Promise<void> {
    const whence = { host: "127.0.0.1", port: proxy.port, localAddress: OTHER, ca: proxy.ca };
    const request = get({ ...whence, path: LARGE.gateway, agent: false, timeout: 60_000 });
    request.once("timeout", () => request.destroy(new Error("no answer over HTTP/1.1")));
    const [response] = await once(request, "response");
    await text(response);
    const session = connectHttp2(`https://127.0.0.1:${proxy.port}`, {
      createConnection: () => connectTls({ ...whence, ALPNProtocols: ["h2"] }),
    });
    try {
      const failed = once(session, "close").then(() => Promise.reject(new Error("closed without an answer")));
      failed.catch(() => {});
      const stream = session.request({ ":path": LARGE.gateway }, { signal: AbortSignal.timeout(60_000) });
      const [answer] = await Promise.race([once(stream, "response"), failed]);
      await text(stream);
      expect([response.statusCode, answer[":status"]]).toEqual([200, 200]);
    } finally {
      session.destroy();
    }
  }

  test.for(attacks)("%s", { timeout }, async ([, attack], { annotate }) => {
    const failures: unknown[] = [];
    let answered = 0;
    let meanwhile = "";
    const seen = await attacked.survives("gateway", async () => {
      const { flood, end } = openFlood(proxy.port, "https", [ATTACKER]);
      const others = watchOthers(() =>
        ask().then(
          () => void answered++,
          (error) => {
            failures.push(error);
            throw error;
          },
        ),
      );
      try {
        await attack(flood);
        const until = answered + 10;
        while (answered < until && failures.length === 0) await sleep(50);
      } finally {
        await others.stop();
        await end();
      }
      meanwhile = others.seen();
    });
    await annotate(`through the proxy ${meanwhile}; ${seen}`);
    expect(failures).toEqual([]);
  });
});
