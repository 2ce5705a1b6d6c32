/** A call that is alone waits for no turn of the event loop, and is joined by all that could travel with it; nor do very many. */
import { EventEmitter } from "node:events";
import { nextTick } from "node:process";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { expect, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { hello, METHOD, nextTurn, secret } from "../fixtures/linked.ts";
import { type LinkRequest, LinkRequestSchema, LinkResponseSchema } from "../gen/link/internal/v1/link_service_pb.ts";
import { createDispatcher } from "../server/dispatcher.ts";
import { implement } from "../server/handlers.ts";
import { limitCalls, withLink } from "./client.ts";
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

test("at the service, once what arrived with it is read", async () => {
  const deps = { ...realTime, log: pino({ level: "silent" }) };
  const begun: bigint[] = [];
  const handlers = {
    getCategoryState({ categoryId }: { categoryId: bigint }) {
      begun.push(categoryId);
      return {};
    },
  };
  let answered = 0;
  const dispatcher = createDispatcher([implement(CategoryInternalService, handlers)], { deps, secret, errors });
  const calls = createServerCalls(dispatcher, () => void answered++);
  const call = (id: number) => ({ id, method: 1, message: new Uint8Array([8, id]), headers: [] });
  calls.take({ methods: [{ number: 1, name: METHOD }], calls: [call(1), call(2)], cancels: [2] } as never);
  expect(begun).toEqual([]);
  await nextTurn();
  expect([begun, answered]).toEqual([[1n], 2]);
});
