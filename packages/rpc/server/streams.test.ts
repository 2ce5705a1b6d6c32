/** A call that is answered by a stream goes through all that a unary one goes through, for as long as it likes. */
import { once } from "node:events";
import { create, createFileRegistry, type DescMethodServerStreaming } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { expect, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { SECRET_HEADER } from "../call.ts";
import { DomainError } from "../domain-error.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { createDispatcher, type DispatcherOptions } from "./dispatcher.ts";
import { type Handlers, type Implementation, implement, type StreamingCall } from "./handlers.ts";
import { onAbort } from "./until.ts";

const secret = "a secret that is long enough";
type Watch = Handlers<typeof Health>["watch"];

interface Options extends Partial<DispatcherOptions> {
  readonly timeoutMs?: number;
  readonly implementation?: Implementation;
}

function serve(watch: Watch, { timeoutMs, implementation, ...options }: Options = {}) {
  const lines: { level: number; rpc: string; msg: string; code?: string }[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(JSON.parse(line)) });
  const health = implement(Health, { check: () => ({}), list: () => ({}), watch }, { isDiagnostic: true });
  const dispatcher = createDispatcher([implementation ?? health], {
    deps: { ...realTime, log },
    secret,
    errors,
    ...options,
  });
  const gone = new AbortController();
  const open = (headers: Record<string, string> = {}, method: DescMethodServerStreaming = Health.method.watch) =>
    dispatcher
      .stream(method, create(method.input), {
        headers: new Headers(headers),
        timeoutMs,
        whenGone: (end) => onAbort(gone.signal, end),
        responseHeaders: new Headers(),
      })
      [Symbol.asyncIterator]();
  const check = () =>
    dispatcher.invoke(Health.method.check, create(Health.method.check.input), {
      headers: new Headers(),
      timeoutMs: undefined,
    });
  return { open, check, leave: () => gone.abort(), drain: dispatcher.drain, lines };
}
const failure = async (next: Promise<unknown>) => {
  const thrown = await next.then(() => expect.fail("no error"), ConnectError.from);
  return [Code[thrown.code], reasonOf(thrown)?.reason];
};
const forever = () => new Promise<never>(() => {});

test("it lasts as long as its handler wants, however long a unary call may take", async () => {
  let now = 0;
  let seen: StreamingCall | undefined;
  const watch: Watch = async function* (_, call) {
    seen = call;
    yield { status: Status.SERVING };
    now += 3_600_000;
    yield { status: Status.NOT_SERVING };
  };
  const log = pino({ level: "silent" });
  const { open } = serve(watch, { maxTimeoutMs: 1, deps: { ...realTime, log, clock: () => now } });
  const statuses: unknown[] = [];
  const answers = open();
  for (let next = await answers.next(); !next.done; next = await answers.next()) statuses.push(next.value);
  expect(statuses).toMatchObject([{ status: Status.SERVING }, { status: Status.NOT_SERVING }]);
  expect(seen?.deadline).toBe(Number.POSITIVE_INFINITY);
  expect(seen?.signal.aborted).toBe(true);
});

test("nothing is begun for a caller that has gone before", async () => {
  let isBegun = false;
  const watch: Watch = () => {
    isBegun = true;
    return forever() as never;
  };
  const { open, leave } = serve(watch);
  leave();
  expect(await failure(open().next())).toEqual(["Canceled", undefined]);
  expect(isBegun).toBe(false);
});

test("it ends when the time that its caller gave is over, and its handler is told", async () => {
  let seen: AbortSignal | undefined;
  const watch: Watch = async function* (_, { signal }) {
    seen = signal;
    yield { status: Status.SERVING };
    await forever();
  };
  const { open, lines } = serve(watch, { timeoutMs: 20 });
  const answers = open();
  await answers.next();
  expect(await failure(answers.next())).toEqual(["DeadlineExceeded", "DEADLINE_EXCEEDED"]);
  expect([seen?.aborted, lines.map(({ code }) => code)]).toEqual([true, ["DeadlineExceeded"]]);
});

test("a limit longer than any timer is no limit of a millisecond", async () => {
  const { open } = serve(
    async function* () {
      yield { status: Status.SERVING };
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
    { timeoutMs: 2 ** 40 },
  );
  const answers = open();
  await answers.next();
  expect((await answers.next()).done).toBe(true);
});

test("a caller that leaves ends it, and its handler is told", async () => {
  let seen: AbortSignal | undefined;
  const watch: Watch = async function* (_, { signal }) {
    seen = signal;
    yield { status: Status.SERVING };
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const { open, leave, lines } = serve(watch);
  const answers = open();
  await answers.next();
  const next = failure(answers.next());
  leave();
  expect(await next).toEqual(["Canceled", undefined]);
  expect([seen?.aborted, lines.map(({ level, code }) => [level, code])]).toEqual([true, [[20, "Canceled"]]]);
});

test("a handler that never looks whether its caller has gone is not asked for more, and cleans up", async () => {
  let cleaned = false;
  const { open, leave } = serve(async function* () {
    try {
      for (;;) yield { status: Status.SERVING };
    } finally {
      cleaned = true;
    }
  });
  const answers = open();
  await answers.next();
  leave();
  expect(await failure(answers.next())).toEqual(["Canceled", undefined]);
  expect(cleaned).toBe(true);
});

test("a caller that leaves while a message waits for it frees what its handler holds", async () => {
  const freed = Promise.withResolvers<void>();
  const { open, leave } = serve(async function* () {
    try {
      for (;;) yield { status: Status.SERVING };
    } finally {
      freed.resolve();
    }
  });
  await open().next(); // and nobody asks for the next one
  leave();
  await freed.promise;
});

test.each<[string, unknown, string[], number]>([
  ["what a handler says", new DomainError("PET_NOT_FOUND", "No."), ["NotFound", "PET_NOT_FOUND"], 20],
  ["a bug", new TypeError("x"), ["Unavailable", "UNAVAILABLE"], 50],
])("%s in the middle of it has its reason and its line in the log", async (_, thrown, says, level) => {
  const { open, lines } = serve(async function* () {
    yield { status: Status.SERVING };
    throw thrown;
  });
  const answers = open();
  await answers.next();
  expect(await failure(answers.next())).toEqual(says);
  expect(lines.map(({ rpc, level }) => [rpc, level])).toEqual([["grpc.health.v1.Health/Watch", level]]);
});

test("streams under way are bounded, and leave room for unary calls", async () => {
  const { open, check } = serve(
    async function* () {
      yield { status: Status.SERVING };
      await forever();
    },
    { streamLimits: { streams: 2, streamsPerCaller: 1 } },
  );
  const own = { [SECRET_HEADER]: secret };
  const [first, second] = [open(own), open(own)];
  await Promise.all([first.next(), second.next()]);
  expect(await failure(open().next())).toEqual(["ResourceExhausted", "TOO_MANY_STREAMS"]);
  expect(await check()).toBeDefined();
  await first.return?.();
  expect((await open().next()).done).toBe(false);
});

/** Goes on until the process stops, and then says a last word. */
const untilDrained: Watch = async function* (_, { draining }) {
  yield { status: Status.SERVING };
  if (!draining.aborted) await once(draining, "abort");
  yield { status: Status.NOT_SERVING };
};

test("when the process stops, each stream says its last word and ends without an error", async () => {
  const { open, drain } = serve(untilDrained);
  const answers = [open(), open()];
  await Promise.all(answers.map((one) => one.next()));
  drain();
  for (const one of answers) {
    expect((await one.next()).value).toMatchObject({ status: Status.NOT_SERVING });
    expect((await one.next()).done).toBe(true);
  }
});

test("one that comes while the process stops is told so at once", async () => {
  const { open, drain } = serve(untilDrained);
  drain();
  const answers = open();
  await answers.next();
  expect((await answers.next()).value).toMatchObject({ status: Status.NOT_SERVING });
  expect((await answers.next()).done).toBe(true);
});

test("one that goes on all the same is ended with UNAVAILABLE, and its handler is told", async () => {
  let seen: AbortSignal | undefined;
  const watch: Watch = async function* (_, { signal }) {
    seen = signal;
    yield { status: Status.SERVING };
    await forever();
  };
  const { open, drain } = serve(watch, { drainMs: 1 });
  const answers = open();
  await answers.next();
  drain();
  expect(await failure(answers.next())).toEqual(["Unavailable", "UNAVAILABLE"]);
  expect(seen?.aborted).toBe(true);
});

test("a service that tells how the process is answers however much the process has to do", async () => {
  const { check } = serve(async function* () {}, { maxCalls: 0 });
  expect(await check()).toBeDefined();
});

test("an internal service asks for the secret", async () => {
  const file = create(FileDescriptorProtoSchema, {
    name: "shelf.proto",
    package: "library.internal.v1",
    syntax: "proto3",
    messageType: [{ name: "Shelf" }],
    service: [
      {
        name: "ShelfService",
        method: [
          {
            name: "Follow",
            inputType: ".library.internal.v1.Shelf",
            outputType: ".library.internal.v1.Shelf",
            serverStreaming: true,
          },
        ],
      },
    ],
  });
  const desc = createFileRegistry(file, () => undefined).getService("library.internal.v1.ShelfService");
  const method = desc?.methods[0] as DescMethodServerStreaming;
  let ran = 0;
  const follow = async function* () {
    ran++;
    yield {};
  };
  const implementation = implement(desc as never, { follow } as never);
  const { open } = serve(async function* () {}, { implementation });
  expect(await failure(open({ [SECRET_HEADER]: "a guess" }, method).next())).toEqual([
    "PermissionDenied",
    "PERMISSION_DENIED",
  ]);
  expect(ran).toBe(0);
  expect((await open({ [SECRET_HEADER]: secret }, method).next()).done).toBe(false);
});
