/** The caller's end of a link by itself: its stream is stood in for. */
import { EventEmitter } from "node:events";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { deadlineAfter } from "../call.ts";
import { markNeverRan, neverRan, stillRunning } from "../client/failed-call.ts";
import { hello, nextTurn } from "../fixtures/linked.ts";
import { type LinkRequest, LinkRequestSchema, LinkResponseSchema } from "../gen/link/internal/v1/link_service_pb.ts";
import { ClientCall } from "./client-call.ts";
import { HELLO_MS, openStream } from "./client-stream.ts";
import { readFrames, toFrame } from "./frames.ts";

test("the call that has the number of one that was given up and answered in the same turn is not cancelled", async () => {
  const written: LinkRequest[] = [];
  const reader = readFrames(LinkRequestSchema, (message) => void written.push(message));
  const write = (frame: Buffer): boolean => {
    reader.read(frame);
    return true;
  };
  const stream = Object.assign(new EventEmitter(), { write });
  const opening = openStream(stream as never, { onReady: () => {}, onOver: () => {} });
  stream.emit("data", toFrame(LinkResponseSchema, hello));
  const link = await opening;
  const [first, second] = [call(), call()];
  link?.send([first]);
  first.giveUp(new ConnectError("enough", Code.Canceled));
  stream.emit("data", toFrame(LinkResponseSchema, { answers: [{ id: 1 }] }));
  link?.send([second]);
  await nextTurn();
  expect(written.flatMap(({ calls }) => calls.map(({ id }) => id))).toEqual([1, 1]);
  expect(written.flatMap(({ cancels }) => cancels)).toEqual([]);
});

test("a call that was given up is over when the service answers it, or the link is lost", async () => {
  const stream = Object.assign(new EventEmitter(), { write: () => true, close() {} });
  const opening = openStream(stream as never, { onReady: () => {}, onOver: () => {} });
  stream.emit("data", toFrame(LinkResponseSchema, hello));
  const [unsent, answered, lost] = [call(), call(), call()];
  (await opening)?.send([answered, lost]);
  const over = [unsent, answered, lost].map((one) => {
    const error = new ConnectError("enough", Code.Canceled);
    one.giveUp(error);
    return stillRunning(error);
  });
  expect(over[0]).toBeUndefined();
  stream.emit("data", toFrame(LinkResponseSchema, { answers: [{ id: 1 }] }));
  expect(await over[1]).toBe(true);
  stream.emit("error", new Error("gone"));
  expect(await over[2]).toBe(false);
});

test("who does not greet has no link", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const close = vi.fn();
  const stream = Object.assign(new EventEmitter(), { write: () => true, close });
  const opening = openStream(stream as never, { onReady: () => {}, onOver: () => {} });
  await vi.advanceTimersByTimeAsync(HELLO_MS - 1);
  expect(close).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await nextTurn();
  expect(await opening).toBeUndefined();
  expect(close).toHaveBeenCalledTimes(1);
});

test("that an open link is refused says nothing of the calls that were sent on it", async () => {
  const stream = Object.assign(new EventEmitter(), { write: () => true, close() {} });
  const opening = openStream(stream as never, { onReady: () => {}, onOver: () => {} });
  stream.emit("data", toFrame(LinkResponseSchema, hello));
  const one = call();
  (await opening)?.send([one]);
  stream.emit("error", markNeverRan(new Error("refused")));
  const error = await one.answered.then(() => expect.unreachable(), ConnectError.from);
  expect([error.code, neverRan(error)]).toEqual([Code.Unavailable, false]);
});

function call(): ClientCall {
  const method = CategoryInternalService.method.getCategoryState;
  const headers = { requestId: "", caller: "", headers: [] };
  const deadline = deadlineAfter(() => 0, 1000);
  const common = { method, input: create(method.input), bytes: new Uint8Array(), headers, deadline };
  const made = { ...common, signal: undefined, read: undefined };
  const one = new ClientCall(made, () => {});
  one.answered.catch(() => {});
  return one;
}
