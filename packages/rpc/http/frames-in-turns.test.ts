import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { FrameType, frame, PREFACE, ping, settings } from "../fixtures/frames.ts";
import {
  createSlicing,
  FRAMES_PER_SLICE,
  framesInTurns,
  SLICE_BYTES,
  WAITING_REQUESTS,
  WORK_OF_CLOSING,
} from "./frames-in-turns.ts";
import { createTurns } from "./turns.ts";

const many = (count: number, part: Buffer) => Buffer.concat(Array.from({ length: count }, () => part));
const data = (bytes: number) => frame({ type: FrameType.DATA, stream: 1, payload: Buffer.alloc(bytes) });

/** The sizes of the slices that a connection's bytes are cut into when they come in parts of so many bytes. */
function sizes(bytes: Buffer, parts = bytes.length): number[] {
  const endOfSlice = createSlicing();
  const found: number[] = [];
  for (let from = 0; from < bytes.length; from += parts)
    for (let rest = bytes.subarray(from, from + parts); rest.length > 0; ) {
      const end = endOfSlice(rest);
      found.push(end);
      rest = rest.subarray(end);
    }
  return found;
}

test("a slice is a few frames", () => {
  const bytes = Buffer.concat([PREFACE, many(3 * FRAMES_PER_SLICE, ping())]);
  const slice = FRAMES_PER_SLICE * ping().length;
  expect(sizes(bytes)).toEqual([PREFACE.length + slice, slice, slice]);
});

test("a slice is so many bytes, whatever its frames", () => {
  const bytes = Buffer.concat([PREFACE, data(100_000), ping()]);
  const found = sizes(bytes);
  expect(found).toHaveLength(Math.ceil(bytes.length / SLICE_BYTES));
  expect(Math.max(...found)).toBe(SLICE_BYTES);
});

test.each([1, 2, 3, 7, 10, 100])("frames are counted in parts of %i bytes, too", (parts) => {
  const flood = many(FRAMES_PER_SLICE * 40, settings());
  const bytes = Buffer.concat([PREFACE, data(300), settings([4, 0], [3, 1]), ping(), flood]);
  const found = sizes(bytes, parts);
  expect(found.reduce((a, b) => a + b)).toBe(bytes.length);
  expect(Math.min(...found)).toBeGreaterThan(0);
  // Beside its frames, the rest of one that the part before has begun.
  expect(Math.max(...found.slice(-20))).toBeLessThan((FRAMES_PER_SLICE + 1) * settings().length);
});

/** A connection whose turns are taken by hand, and what node's parser is given of it. */
async function connected() {
  const due: (() => void)[] = [];
  const pieces: { caller: unknown; work: unknown }[] = [];
  const turns = createTurns((turn) => void due.push(turn));
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer((socket) => accepted.resolve(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void client.destroy());
  const socket = (await accepted.promise).on("error", () => {});
  const frames = framesInTurns(socket, (caller, begin) =>
    turns(caller, () => {
      const work = begin();
      pieces.push({ caller, work });
      return work;
    }),
  );
  const given: number[] = [];
  frames.stream.on("data", (slice: Buffer) => given.push(slice.length));
  const total = () => given.reduce((a, b) => a + b, 0);
  /** Takes turns, and reads what comes meanwhile, until it is so. */
  async function until(isSo: () => boolean) {
    while (!isSo()) {
      due.shift()?.();
      await new Promise(setImmediate);
    }
  }
  return { client, socket, frames, given, total, until, pieces };
}

test("nothing is given at once, and all in the order of turns", async () => {
  const { client, socket, given, total, until, pieces } = await connected();
  const bytes = Buffer.concat([PREFACE, many(100, ping())]);
  client.write(bytes);
  await once(socket, "readable");
  expect(given).toEqual([]);
  await until(() => total() === bytes.length);
  expect(Math.max(...given)).toBeLessThanOrEqual(PREFACE.length + FRAMES_PER_SLICE * ping().length);
  expect(new Set(pieces.map(({ caller }) => caller))).toEqual(new Set(["127.0.0.1"]));
});

test("while requests wait for their turn nothing more is given", async () => {
  const { client, socket, frames, given, until } = await connected();
  /** How much had been given when each began. */
  const begun: number[] = [];
  for (let i = 0; i < WAITING_REQUESTS; i++) void frames.begin(() => begun.push(given.length));
  client.write(Buffer.concat([PREFACE, ping()]));
  await once(socket, "readable");
  await until(() => given.length === 1);
  expect(begun).toEqual(Array.from({ length: WAITING_REQUESTS }, () => 0));
});

test("what a connection has sent before it is destroyed is given no more", async () => {
  const { client, socket, frames, given, until } = await connected();
  client.write(Buffer.concat([PREFACE, many(4000, ping())]));
  await until(() => given.length > 0);
  const before = given.length;
  socket.destroy();
  await until(() => frames.stream.destroyed);
  expect(given).toHaveLength(before);
});

test("a trusted connection is given what it has sent at once", async () => {
  const { client, frames, given, pieces } = await connected();
  frames.trust();
  const bytes = Buffer.concat([PREFACE, many(1000, ping())]);
  client.write(bytes);
  await once(frames.stream, "data");
  expect(given).toEqual([bytes.length]);
  expect(pieces).toEqual([]);
});

test("the end of a connection waits for its turn, and counts as much work", async () => {
  const { client, socket, frames, until, pieces } = await connected();
  client.resetAndDestroy();
  await new Promise((resolve) => socket.once("close", resolve));
  expect(frames.stream.destroyed).toBe(false);
  await until(() => frames.stream.destroyed);
  expect(pieces.at(-1)?.work).toBe(WORK_OF_CLOSING);
});

test("what is written arrives, in order, and the end after it", async () => {
  const { client, frames } = await connected();
  frames.stream.cork();
  for (const part of ["a", "b", "c"]) frames.stream.write(part);
  frames.stream.uncork();
  frames.stream.end("d");
  let came = "";
  for await (const part of client.setEncoding("utf8")) came += part;
  expect(came).toBe("abcd");
});
