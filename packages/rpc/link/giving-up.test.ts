/** Calls that nobody waits for any more. */
import { Code, createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { describe, expect, onTestFinished, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import type { Call } from "../call.ts";
import { openReplica } from "../client/replica.ts";
import {
  ask,
  clientOf,
  failureOf,
  hello,
  METHOD,
  openTo,
  rawCaller,
  secret,
  startLinked,
  startRawService,
  startService,
} from "../fixtures/linked.ts";
import { implement } from "../server/handlers.ts";
import { limitCalls } from "./client.ts";
import { toError } from "./frames.ts";

/** A link on which nothing is answered, and what has arrived on it. */
async function unanswered() {
  const opened = Promise.withResolvers<Parameters<Parameters<typeof startRawService>[0]>[0]>();
  const url = await startRawService((link) => {
    link.send(hello);
    opened.resolve(link);
  });
  const client = clientOf(openTo(url));
  return { client, link: () => opened.promise };
}

test("one is cancelled, and the others are not", async () => {
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const { client } = await startLinked(async ({ categoryId }) => {
    if (categoryId === 2n) begun.resolve();
    await held.promise;
    return { op: categoryId };
  });
  const abort = new AbortController();
  const cancelled = failureOf(ask(client, 1, { signal: abort.signal }));
  const other = ask(client, 2);
  await begun.promise;
  abort.abort();
  expect((await cancelled).code).toBe(Code.Canceled);
  held.resolve();
  expect((await other).op).toBe(2n);
  // The answer to the cancelled call has come meanwhile, and meant nothing.
  expect((await ask(client, 3)).op).toBe(3n);
});

test("the service is told, and a call that is over before it was sent is not sent", async () => {
  const { client, link } = await unanswered();
  const [early, late] = [new AbortController(), new AbortController()];
  const calls = [early, late].map(({ signal }, id) => failureOf(ask(client, id, { signal })));
  early.abort();
  const { received, count } = await link();
  await count(2);
  late.abort();
  await count(3);
  expect(received.map(({ calls, cancels }) => [calls.map(({ id }) => id), cancels])).toEqual([
    [[], []],
    [[1], []],
    [[], [1]],
  ]);
  expect((await Promise.all(calls)).map(({ code }) => code)).toEqual([Code.Canceled, Code.Canceled]);
});

test("one whose time is over ends at the service, which says so", async () => {
  const { url } = await startService(() => new Promise(() => {}));
  const link = rawCaller(url);
  const call = { id: 1, method: 1, timeoutMs: 50, message: new Uint8Array([8, 1]) };
  link.send({ ...hello, methods: [{ number: 1, name: METHOD }], calls: [call] });
  await link.count(2);
  const outcome = link.received[1]?.answers[0]?.outcome;
  const failure = outcome?.case === "failure" ? toError(outcome.value, []) : undefined;
  expect([failure?.code, failure && reasonOf(failure)?.reason]).toEqual([Code.DeadlineExceeded, "DEADLINE_EXCEEDED"]);
});

test("one whose time is over ends at the caller when the service says nothing", async () => {
  const { client, link } = await unanswered();
  expect((await failureOf(ask(client, 1, { timeoutMs: 3_000 }))).code).toBe(Code.DeadlineExceeded);
  const { received, count } = await link();
  await count(3);
  expect(received[1]?.calls[0]?.timeoutMs).toBeLessThanOrEqual(3_000);
  expect(received[2]?.cancels).toEqual([1]);
});

test("what was cancelled before its turn never begins, and is answered all the same", async () => {
  const ran: bigint[] = [];
  const { url } = await startService(({ categoryId }) => {
    ran.push(categoryId);
    return {};
  });
  const link = rawCaller(url);
  const message = (id: number) => new Uint8Array([8, id]);
  const methods = [{ number: 1, name: METHOD }];
  const calls = [1, 2].map((id) => ({ id, method: 1, message: message(id) }));
  link.send({ ...hello, methods, calls, cancels: [1] });
  await link.count(2);
  const answers = link.received.flatMap(({ answers }) => answers);
  while (answers.length < 2) {
    await link.count(link.received.length + 1);
    answers.push(...(link.received.at(-1)?.answers ?? []));
  }
  expect(ran).toEqual([2n]);
  expect(answers.find(({ id }) => id === 1)?.outcome).toMatchObject({ value: { code: Code.Canceled } });
});

describe.each([
  ["over a link", true],
  ["without a link", false],
])("%s", (_, link) => {
  /** A call that has begun, of a service that does not answer while the test runs. */
  async function begun(by: "getCategory" | "deleteCategory") {
    const calls = Promise.withResolvers<Call>();
    const held = Promise.withResolvers<object>();
    const handle = (_request: unknown, call: Call) => {
      calls.resolve(call);
      return held.promise;
    };
    const handlers = new Proxy({}, { get: () => handle });
    const { url } = await startService(undefined, implement(CategoryService, handlers as never));
    const replica = openReplica(url, { secret, limit: limitCalls(errors), link, ...realTime });
    onTestFinished(() => {
      held.resolve({});
      replica.close();
    });
    const abort = new AbortController();
    const { signal } = abort;
    const call = createClient(CategoryService, replica.transport)[by]({ categoryId: 1n }, { signal });
    call.catch(() => {});
    return { call: await calls.promise, giveUp: () => abort.abort(), lose: () => replica.close() };
  }

  test.each(["giveUp", "lose"] as const)("a read learns that its caller has gone: %s", async (how) => {
    const { call, ...leave } = await begun("getCategory");
    expect(call.signal?.aborted).toBe(false);
    leave[how]();
    await expect.poll(() => call.signal?.aborted).toBe(true);
  });

  test("what changes something goes on", async () => {
    const { call } = await begun("deleteCategory");
    expect(call.signal).toBeUndefined();
  });
});
