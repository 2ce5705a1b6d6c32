/** A call that is alone waits for no turn of the event loop, and is joined by all that could travel with it; nor do very many. */
import { EventEmitter } from "node:events";
import { nextTick } from "node:process";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { expect, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { limitCalls } from "../client/call-limit.ts";
import { echo, hello, METHOD, nextTurn, secret } from "../fixtures/linked.ts";
import { type LinkRequest, LinkRequestSchema, LinkResponseSchema } from "../gen/link/internal/v1/link_service_pb.ts";
import { createDispatcher } from "../server/dispatcher.ts";
import { implement } from "../server/handlers.ts";
import { withLink } from "./client.ts";
import { readFrames, toFrame } from "./frames.ts";
import { createServerCalls } from "./server-calls.ts";

/** When all has run that follows from what runs now. */
const soon = () => new Promise<void>((resolve) => nextTick(resolve));

test("at the caller", async () => {
  const sent: LinkRequest[] = [];
  const reader = readFrames(LinkRequestSchema, (message) => void (message.calls.length > 0 && sent.push(message)));
  const write = (frame: Buffer) => {
    reader.read(frame);
    return true;
  };
  const stream = Object.assign(new EventEmitter(), { write });
  const receive = (message: object) => stream.emit("data", toFrame(LinkResponseSchema, message));
  const connect = async () => stream as never;
  const transport = withLink({} as never, { connect, clock: () => 0, limit: limitCalls(errors) });
  const { getCategoryState } = CategoryInternalService.method;
  const ask = () => transport.unary(getCategoryState, undefined, undefined, undefined, { categoryId: 1n });
  const sizes = () => sent.map(({ calls }) => calls.length);
  let told = 0;
  const answerAll = async (...asked: Promise<unknown>[]) => {
    const ids = sent.slice(told).flatMap(({ calls }) => calls.map(({ id }) => id));
    told = sent.length;
    receive({ answers: ids.map((id) => ({ id, outcome: { case: "message", value: new Uint8Array() } })) });
    await Promise.all(asked);
  };

  const first = ask();
  await nextTurn();
  receive(hello);
  for (let turns = 0; turns < 2; turns++) await nextTurn();
  expect(sizes()).toEqual([1]);
  await answerAll(first);

  const second = ask();
  await soon();
  expect(sizes()).toEqual([1, 1]);
  const third = ask();
  await soon();
  expect(sizes()).toEqual([1, 1]); // others may come while the second is under way
  await nextTurn();
  expect(sizes()).toEqual([1, 1, 1]);
  await answerAll(second, third);

  const two = [ask(), ask()];
  await soon();
  expect(sizes()).toEqual([1, 1, 1, 2]);
  await answerAll(...two);
  const behindTwo = ask();
  await soon();
  expect(sizes()).toEqual([1, 1, 1, 2]);
  await nextTurn();
  expect(sizes()).toEqual([1, 1, 1, 2, 1]);
  await answerAll(behindTwo);

  const many = Array.from({ length: 40 }, ask);
  expect(sizes().slice(5)).toEqual([32]); // for the service to begin with
  await nextTurn();
  expect(sizes().slice(5)).toEqual([32, 8]);
  await answerAll(...many);
});

test("at the service", async () => {
  const deps = { ...realTime, log: pino({ level: "silent" }) };
  const implementations = [implement(CategoryInternalService, { getCategoryState: echo })];
  let waiting: (() => unknown)[] = [];
  let mayBegin = true;
  let answered = 0;
  const calls = createServerCalls({
    dispatcher: createDispatcher(implementations, { deps, secret, errors }),
    turns: Object.assign((_: unknown, begin: () => unknown) => void waiting.push(begin), { atOnce: () => mayBegin }),
    onEnd: () => void answered++,
  });
  const take = async (...ids: number[]) => {
    const message = new Uint8Array();
    const methods = ids[0] === 1 ? [{ number: 1, name: METHOD }] : [];
    calls.take({ methods, calls: ids.map((id) => ({ id, method: 1, message, headers: [] })), cancels: [] } as never);
    await nextTurn();
    return [answered, waiting.length];
  };
  const begin = async () => {
    for (const one of waiting) one();
    waiting = [];
    await nextTurn();
  };

  expect(await take(1)).toEqual([1, 0]);
  expect(await take(2, 3)).toEqual([1, 2]);
  expect(await take(4)).toEqual([1, 3]); // behind those
  await begin();
  mayBegin = false;
  expect(await take(5)).toEqual([4, 1]);
  await begin();
  expect(answered).toBe(5);
});
