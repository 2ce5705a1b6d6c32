/** Clients that ask for much and read nothing: memory stays bounded, and others are served afterwards. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  END_HEADERS,
  END_STREAM,
  FrameType,
  frame,
  headers,
  ping,
  reset,
  streams,
} from "../../packages/rpc/fixtures/frames.ts";
import { type Attack, type Attacked, type Flood, startAttacked, type Target, timeout } from "./flood.ts";
import { closedWindow, DOCS_PAGE, data, fields, http1, hugeWindow, LARGE, LIST } from "./requests.ts";

let attacked: Attacked;
beforeAll(async () => {
  attacked = await startAttacked();
}, timeout);
afterAll(() => attacked?.[Symbol.asyncDispose]());

const asked = (path: string, count = 100, from = 0, method = "GET") =>
  streams(count, from).map((stream) => headers(stream, fields(method, path)));

/** By POST, with a body. */
const posted = (path: string, count = 100, from = 0) =>
  streams(count, from).flatMap((stream) => [
    headers(stream, fields("POST", path, "application/json"), END_HEADERS),
    data(stream, '{"limit":100}', END_STREAM),
  ]);

/** Asks on every stream that a connection may have. */
const all = (begin: Buffer, path: string, sessions: number) => {
  const bytes = Buffer.concat([begin, ...asked(path)]);
  return (flood: Flood) => flood.connect(sessions, (socket) => socket.write(bytes));
};
/** The same, and each time `leave` ends the requests, others follow. */
const leaving =
  (begin: Buffer, path: string, leave: (stream: number) => Buffer, rounds: number, ask = asked) =>
  async (flood: Flood) => {
    await flood.connect(100, (socket) => socket.write(begin));
    const parts = Array.from({ length: rounds }, (_, i) => {
      const own = streams(50, 50 * i);
      return { ask: Buffer.concat(ask(path, 50, 50 * i)), leave: Buffer.concat(own.map(leave)) };
    });
    await flood.repeat(
      2 * rounds,
      (socket, round) => {
        const part = parts[round >> 1];
        if (part) socket.write(round % 2 === 0 ? part.ask : part.leave);
      },
      300,
    );
  };
const goodbye = frame({ type: FrameType.GOAWAY, payload: Buffer.from([0, 0, 0, 0, 0, 0, 0, 2]) });
const nonsense = frame({ type: FrameType.PING, stream: 1, payload: Buffer.alloc(8) });

/** At the gateway and at a service. */
const attacks = (which: Target): Attack[] => [
  [
    "over HTTP/1.1, pipelined",
    (flood) => {
      const bytes = Buffer.concat(Array.from({ length: 50 }, () => http1(`GET ${LARGE[which]}`)));
      return flood.connect(450, (socket) => socket.write(bytes));
    },
  ],
  ["over HTTP/2, behind windows that are never opened", all(closedWindow, LARGE[which], 150)],
  ["over HTTP/2, on all streams of all connections", all(closedWindow, LARGE[which], 1000)],
  ["over HTTP/2, behind huge windows", all(hugeWindow, LARGE[which], 150)],
  ["whose requests are reset", leaving(hugeWindow, LARGE[which], (stream) => reset(stream), 6)],
];
const other: Attack[] = [
  ["whose requests are reset behind closed windows", leaving(closedWindow, LARGE.pet, (stream) => reset(stream), 6)],
  ["asked for by POST, whose requests are reset", leaving(hugeWindow, LIST, (stream) => reset(stream), 6, posted)],
  ["whose client says goodbye", leaving(hugeWindow, LARGE.pet, () => goodbye, 2)],
  ["whose client breaks the protocol", leaving(hugeWindow, LARGE.pet, () => nonsense, 2)],
  [
    "whose client goes on with pings",
    async (flood) => {
      await all(closedWindow, LARGE.pet, 100)(flood);
      await flood.repeat(50, (socket) => socket.write(ping()), 20);
    },
  ],
];

/** What comes for one request: floods that are refused at once would prove nothing. */
test.each<[string, Target, Buffer]>([
  ["over HTTP/1.1 at the gateway", "gateway", http1(`GET ${LARGE.gateway}`)],
  ["over HTTP/1.1 at a service", "pet", http1(`GET ${LARGE.pet}`)],
  ["over HTTP/2 at the gateway", "gateway", Buffer.concat([hugeWindow, ...asked(LARGE.gateway, 1)])],
  ["over HTTP/2 at a service", "pet", Buffer.concat([hugeWindow, ...asked(LARGE.pet, 1)])],
  ["a page", "gateway", Buffer.concat([hugeWindow, ...asked(DOCS_PAGE, 1)])],
])("an answer is large: %s", async (_, which, bytes) => {
  const { port } = new URL(attacked.petstore.url(which));
  const socket = connect(Number(port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.resume().write(bytes);
  await expect.poll(() => socket.bytesRead).toBeGreaterThan(80_000);
});

describe.each<Target>(["gateway", "pet"])("answers that nobody reads, at %s", (which) => {
  test.for(attacks(which))("%s", { timeout }, async ([, attack], { annotate }) => {
    await annotate(await attacked.survives(which, attack));
  });
});

test.for(other)("answers that nobody reads, %s", { timeout }, async ([, attack], { annotate }) => {
  await annotate(await attacked.survives("pet", attack));
});

describe("pages that nobody reads", () => {
  test.for<Attack>([
    ["behind windows that are never opened", all(closedWindow, DOCS_PAGE, 20)],
    ["behind huge windows", all(hugeWindow, DOCS_PAGE, 20)],
    ["over HTTP/1.1", (flood) => flood.connect(450, (socket) => socket.write(http1(`GET ${DOCS_PAGE}`)))],
  ])("%s", { timeout }, async ([, attack], { annotate }) => {
    await annotate(await attacked.survives("gateway", attack));
  });
});
