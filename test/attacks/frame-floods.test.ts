/** Many requests and frames at once: no process ends, memory stays bounded, and others are served afterwards. */
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  END_HEADERS,
  END_STREAM,
  FrameType,
  frame,
  headerBlock,
  headers,
  ping,
  reset,
  settings,
  streams,
} from "../../packages/rpc/fixtures/frames.ts";
import { type Attack, type Attacked, type Flood, startAttacked, type Target, timeout } from "./flood.ts";
import { begin, CREATE_PET, data, fields, http1, http2, LARGE, LIST, listPath } from "./requests.ts";

let attacked: Attacked;
beforeAll(async () => {
  attacked = await startAttacked();
}, timeout);
afterAll(() => attacked?.[Symbol.asyncDispose]());

const SMALL: Record<Target, string> = { gateway: "/pets/1", pet: listPath(1) };

/** A write that is refused for its category, so that the floods all find the same pets. */
const STRAY: Record<Target, [path: string, body: string]> = {
  gateway: ["/pets", '{"name":"x","categoryId":77}'],
  pet: [CREATE_PET, '{"pet":{"name":"x","categoryId":77}}'],
};

const many = (part: Buffer, count: number) => Buffer.concat(Array.from({ length: count }, () => part));

/** 100 requests after each other on each of 50 connections, 20 times, each with its reset behind it or a moment later. */
const rapidReset = (ask: (stream: number) => Buffer, later: boolean) => async (flood: Flood) => {
  const rounds = Array.from({ length: 20 }, (_, i) => {
    const own = streams(100, 100 * i);
    const asked = own.map(ask);
    const ends = own.map((stream) => reset(stream));
    return later
      ? [Buffer.concat(asked), Buffer.concat(ends)]
      : [Buffer.concat(own.flatMap((_, j) => [asked[j] ?? begin, ends[j] ?? begin])), begin.subarray(0, 0)];
  });
  const sent = new WeakMap<object, number>();
  await flood.connect(50, (socket) => socket.write(begin), { reads: true });
  await flood.repeat(40, (socket) => {
    const i = sent.get(socket) ?? 0;
    sent.set(socket, i + 1);
    const bytes = rounds[i >> 1]?.[i & 1];
    if (bytes) socket.write(bytes);
  });
};
const bare = (method: string, path: string) => (stream: number) => headers(stream, fields(method, path));
const posted = (path: string, body: string) => (stream: number) =>
  Buffer.concat([
    headers(stream, fields("POST", path, "application/json"), END_HEADERS),
    data(stream, body, END_STREAM),
  ]);
/** The same bytes so many times over each of 30 connections. */
const without =
  (end: Buffer, part: Buffer, times: number, reads = false) =>
  (flood: Flood) =>
    flood.connect(
      30,
      (socket) => {
        socket.write(Buffer.concat([begin, end]));
        for (let i = 0; i < times; i++) socket.write(part);
      },
      { reads },
    );

const attacks = (which: Target): Attack[] => [
  [
    "20,000 requests on 200 sessions",
    (flood) => {
      const bytes = Buffer.concat([begin, http2("GET", SMALL[which], 100)]);
      return flood.connect(200, (socket) => socket.write(bytes), { reads: true });
    },
  ],
  ["rapid reset", rapidReset(bare("GET", LARGE[which]), false)],
  ["rapid reset, a moment after the requests", rapidReset(bare("GET", LARGE[which]), true)],
  ["rapid reset of HEAD", rapidReset(bare("HEAD", SMALL[which]), true)],
  ["rapid reset of requests with bodies", rapidReset(posted(LIST, '{"limit":100}'), false)],
  ["rapid reset of requests, a moment after their bodies", rapidReset(posted(LIST, '{"limit":100}'), true)],
  ["rapid reset of writes, a moment after their bodies", rapidReset(posted(...STRAY[which]), true)],
  [
    "rapid reset behind Expect: 100-continue",
    rapidReset(
      (stream) => headers(stream, [...fields("POST", SMALL[which], "application/json"), ["expect", "100-continue"]]),
      false,
    ),
  ],
  [
    "thousands of pipelined requests",
    (flood) => {
      const bytes = many(http1("GET /healthz"), 1000);
      return flood.connect(200, (socket) => socket.write(bytes), { reads: true });
    },
  ],
  [
    "thousands of pipelined requests, whose answers nobody reads",
    (flood) => {
      const bytes = many(http1("GET /nowhere"), 1000);
      return flood.connect(200, (socket) => socket.write(bytes));
    },
  ],
];
const open = headers(1, fields("POST", SMALL.pet, "application/json"), END_HEADERS);
const frames: Attack[] = [
  [
    "CONTINUATION",
    without(
      headers(1, undefined, END_STREAM),
      frame({ type: FrameType.CONTINUATION, stream: 1, payload: headerBlock([["x", "y".repeat(1000)]]) }),
      5000,
    ),
  ],
  ["SETTINGS", without(Buffer.alloc(0), many(settings(), 10_000), 10)],
  ["PING", without(Buffer.alloc(0), many(ping(), 10_000), 10)],
  ["PING, whose answers are read", without(Buffer.alloc(0), many(ping(), 10_000), 10, true)],
  ["empty DATA", without(open, many(frame({ type: FrameType.DATA, stream: 1 }), 10_000), 10)],
  [
    "WINDOW_UPDATE",
    without(open, many(frame({ type: FrameType.WINDOW_UPDATE, payload: Buffer.from([0, 0, 0, 1]) }), 10_000), 10),
  ],
];

describe.each<Target>(["gateway", "pet"])("at %s", (which) => {
  test.for(attacks(which))("%s", { timeout }, async ([, attack], { annotate }) => {
    await annotate(await attacked.survives(which, attack));
  });
});

test.for(frames)("frames without end: %s", { timeout }, async ([, attack], { annotate }) => {
  await annotate(await attacked.survives("pet", attack));
});
