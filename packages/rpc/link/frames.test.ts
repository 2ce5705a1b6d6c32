import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type LinkRequest, LinkRequestSchema } from "../gen/link/internal/v1/link_service_pb.ts";
import { LinkViolation, MAX_FRAME_BYTES, readFrames, toFrame } from "./frames.ts";

const call = (id: number, bytes = 3) => ({ calls: [{ id, method: 1, message: new Uint8Array(bytes).fill(id) }] });
const frameOf = (init: Parameters<typeof toFrame<typeof LinkRequestSchema>>[1]) => toFrame(LinkRequestSchema, init);

/** Reads the chunks one after the other. */
function read(...chunks: readonly Buffer[]) {
  const messages: LinkRequest[] = [];
  const reader = readFrames(LinkRequestSchema, (message) => messages.push(message));
  for (const chunk of chunks) reader.read(chunk);
  return { ids: messages.flatMap(({ calls }) => calls.map(({ id }) => id)), isWithinFrame: reader.isWithinFrame() };
}

test("a frame is gRPC's: no flags, the length, the message", () => {
  const frame = frameOf(call(7));
  const message = toBinary(LinkRequestSchema, create(LinkRequestSchema, call(7)));
  expect([frame[0], frame.readUInt32BE(1), frame.length]).toEqual([0, message.length, 5 + message.length]);
  expect(frame.subarray(5).equals(message)).toBe(true);
});

test("frames are read, however they are cut", () => {
  const bytes = Buffer.concat([frameOf(call(1)), frameOf({}), frameOf(call(2, 300)), frameOf(call(3))]);
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    expect(read(...chunks)).toEqual({ ids: [1, 2, 3], isWithinFrame: false });
  }
});

test("one that has not arrived is waited for", () => {
  const frame = frameOf(call(1));
  expect(read(frame, frame.subarray(0, 3))).toEqual({ ids: [1], isWithinFrame: true });
  expect(read(frame.subarray(0, -1))).toEqual({ ids: [], isWithinFrame: true });
});

test("the largest message is read, and a larger one refused by its length alone", () => {
  const around = frameOf(call(1, MAX_FRAME_BYTES)).length - 5 - MAX_FRAME_BYTES;
  expect(read(frameOf(call(1, MAX_FRAME_BYTES - around))).ids).toEqual([1]);
  expect(() => read(frameOf(call(1, MAX_FRAME_BYTES + 1 - around)).subarray(0, 5))).toThrow(LinkViolation);
});

test.each([
  ["flags", Buffer.from([1, 0, 0, 0, 0]), "a frame has the flags 1: links are not compressed"],
  ["a message that is none", Buffer.from([0, 0, 0, 0, 2, 0x1a, 0x7f]), "a frame holds no LinkRequest"],
])("%s are not read", (_, bytes, words) => {
  expect(() => read(bytes)).toThrow(new LinkViolation(words));
});
