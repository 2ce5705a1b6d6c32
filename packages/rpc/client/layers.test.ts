/** What a client adds above its connections: durations, retries, ambiguous failures, and what answers have seen. */
import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport, type Transport } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { errors, reasonOf, rpcError } from "../../../processes/errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { InventoryInternalService } from "../../../proto/gen/petstore/internal/v1/inventory_internal_service_pb.ts";
import { type CallEnded, SEEN_HEADER } from "../call.ts";
import { TickerService, type Watch } from "../fixtures/ticker.ts";
import { markNeverRan } from "./failed-call.ts";
import { AmbiguousFailure, createSeen, pipeline, withAmbiguousFailures } from "./layers.ts";

const { getCategory, createCategory, deleteCategory } = CategoryService.method;
const unsent = () => markNeverRan(new ConnectError("connection refused", Code.Unavailable));
const lost = () => new ConnectError("socket hang up", Code.Aborted);

/** A transport that fails as told, then answers; and what it was called with. */
function scripted(...failures: unknown[]) {
  const calls: { headers: Headers; timeoutMs: number | undefined }[] = [];
  const transport = {
    stream: () => Promise.reject(new Error("not used")),
    unary: async (method: DescMethodUnary, _signal: unknown, timeoutMs: number | undefined, headers: HeadersInit) => {
      calls.push({ headers: new Headers(headers), timeoutMs });
      const failure = failures.shift();
      if (failure) throw failure;
      return {
        stream: false,
        service: method.parent,
        method,
        header: new Headers(),
        trailer: new Headers(),
        message: create(method.output),
      };
    },
  } as unknown as Transport;
  return { transport, calls };
}
const call = (transport: Transport, method: DescMethodUnary, input: object = {}, timeoutMs?: number) =>
  transport.unary(method, undefined, timeoutMs, undefined, input as never).then(() => undefined, ConnectError.from);

let time = 0;
const noWait = {
  clock: () => time,
  random: () => 0.5,
  sleep: async (ms: number) => {
    time += ms;
  },
  errors,
};
const stack = (transport: Transport) => pipeline(transport, noWait);

describe("an ambiguous failure", () => {
  test.each([Code.Unavailable, Code.Aborted, Code.Internal, Code.Unknown, Code.Canceled])(
    "is unavailable (%i)",
    async (code) => {
      const { transport } = scripted(new ConnectError("read ECONNRESET at /x", code));
      const error = (await call(withAmbiguousFailures(transport, noWait), deleteCategory)) as ConnectError;
      expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Unavailable, "UNAVAILABLE"]);
      expect(error.rawMessage).toMatch(/^CategoryService did not answer\. A write may or may not have happened/);
    },
  );

  test.each([getCategory, deleteCategory])("is none where the call never left: $name", async (method) => {
    const { transport } = scripted(unsent());
    const error = (await call(withAmbiguousFailures(transport, noWait), method)) as ConnectError;
    expect(reasonOf(error)?.reason).toBe("UNAVAILABLE");
    expect(error.rawMessage).toBe("CategoryService can't be reached now. Nothing was done. Try again in a second.");
  });

  test("is not what a service says itself, whatever its code", async () => {
    const { transport } = scripted(rpcError("INTERNAL", "a bug"));
    expect(await call(withAmbiguousFailures(transport, noWait), getCategory)).toMatchObject({
      code: Code.Internal,
      rawMessage: "a bug",
    });
  });
});

describe("retries", () => {
  test("reads and keyed creates are repeated", async () => {
    for (const [method, input] of [
      [getCategory, {}],
      [InventoryInternalService.method.reserve, {}],
      [createCategory, { requestId: "k" }],
    ] as const) {
      const { transport, calls } = scripted(lost(), lost());
      expect(await call(stack(transport), method, input)).toBeUndefined();
      expect(calls).toHaveLength(3);
    }
  });

  test("writes that might be done twice are not", async () => {
    for (const [method, input] of [
      [deleteCategory, {}],
      [createCategory, {}],
    ] as const) {
      const { transport, calls } = scripted(lost());
      expect(await call(stack(transport), method, input)).toBeInstanceOf(AmbiguousFailure);
      expect(calls).toHaveLength(1);
    }
  });

  test("a call may have run if any attempt may have", async () => {
    const input = { requestId: "k" };
    const never = scripted(unsent(), unsent(), unsent());
    expect((await call(stack(never.transport), createCategory, input))?.rawMessage).toContain("Nothing was done");
    const once = scripted(unsent(), lost(), unsent());
    expect((await call(stack(once.transport), createCategory, input))?.rawMessage).toContain("may or may not have");
  });

  test("what a service answered is not asked again: it was nearest to the failure", async () => {
    const { transport, calls } = scripted(rpcError("UNAVAILABLE", "the store"), rpcError("OVERLOADED", "later"));
    expect((await call(stack(transport), getCategory))?.rawMessage).toBe("the store");
    expect(calls).toHaveLength(1);
  });

  test("three attempts at most, and none after the deadline", async () => {
    const often = scripted(lost(), lost(), lost(), lost());
    expect(await call(stack(often.transport), getCategory)).toBeInstanceOf(AmbiguousFailure);
    expect(often.calls).toHaveLength(3);
    const brief = scripted(lost(), lost());
    expect(await call(stack(brief.transport), getCategory, {}, 10)).toBeInstanceOf(AmbiguousFailure);
    expect(brief.calls).toHaveLength(1);
  });

  test("each attempt has what remains of the time", async () => {
    const { transport, calls } = scripted(lost());
    await call(stack(transport), getCategory, {}, 1000);
    expect(calls.map(({ timeoutMs }) => timeoutMs)).toEqual([1000, 975]);
  });

  test("a service in trouble is not buried: a tenth of the traffic, after a burst", async () => {
    let attempts = 0;
    const down = {
      unary: async () => {
        attempts++;
        throw lost();
      },
    } as unknown as Transport;
    const transport = stack(down);
    for (let i = 0; i < 1000; i++) await call(transport, getCategory);
    expect(attempts).toBeGreaterThan(1090);
    expect(attempts).toBeLessThan(1130);
  });
});

// Each call is told once at its end, with all its attempts.
const told: string[] = [];
beforeEach(() => {
  told.length = 0;
});
let now = 0;
const callEnded: CallEnded = (method, ms, failure) => {
  told.push(`${method.name} ${failure ? Code[failure.code] : "ok"} after ${ms}`);
};
const deps = {
  errors,
  callEnded,
  clock: () => now,
  random: () => 0.5,
  sleep: async (ms: number) => {
    now += ms;
  },
};
let failures: unknown[] = [];
const wait = () => {
  const failure = failures.shift();
  if (failure) throw failure;
  return {};
};
const client = (watch: Watch) =>
  createClient(
    TickerService,
    pipeline(
      createRouterTransport(({ service }) => void service(TickerService, { wait, watch: watch as never })),
      deps,
    ),
  );
const twoTicks: Watch = async function* () {
  yield { text: "1" };
  yield { text: "2" };
};

test("a call, and one that is repeated", async () => {
  const lost = new ConnectError("socket hang up", Code.Aborted);
  failures = [];
  const { wait } = client(twoTicks);
  await wait({});
  failures = [lost];
  await wait({});
  failures = [lost, lost, lost];
  await expect(wait({})).rejects.toThrow();
  expect(told).toEqual(["Wait ok after 0", "Wait ok after 25", "Wait Unavailable after 125"]);
});

test("a stream, until its last message was read, its reader leaves, or it fails", async () => {
  const leaving = new AbortController();
  const { watch } = client(twoTicks);
  for await (const _ of watch({})) {
    expect(told).toEqual([]);
    now += 10;
  }
  expect(told).toEqual(["Watch ok after 20"]);
  const left = Array.fromAsync(watch({}, { signal: leaving.signal }), () => leaving.abort());
  await expect(left).rejects.toThrow();
  expect(told.slice(1)).toEqual(["Watch Canceled after 0"]);
  const failing = client(async function* () {
    yield { text: "1" };
    throw new ConnectError("gone", Code.NotFound);
  });
  await expect(Array.fromAsync(failing.watch({}))).rejects.toThrow();
  expect(told.slice(2)).toEqual(["Watch NotFound after 0"]);
});

/** Two services, each of which answers with what `tell` says it has seen, and the headers that they were sent. */
function bench() {
  const sent: string[] = [];
  let tell: () => string | undefined = () => undefined;
  let fails = false;
  const answer = (init: HeadersInit | undefined) => {
    sent.push(new Headers(init).get(SEEN_HEADER) ?? "none");
    const told = tell();
    const header = new Headers({ etag: '"1"', ...(told !== undefined && { [SEEN_HEADER]: told }) });
    if (fails) return Promise.reject(new ConnectError("it is gone", Code.NotFound, header));
    return Promise.resolve({ header } as never);
  };
  const transport: Transport = {
    unary: (_method, _signal, _timeoutMs, init) => answer(init),
    stream: (_method, _signal, _timeoutMs, init) => answer(init),
  };
  const withSeen = createSeen();
  const [pets, orders] = [withSeen(transport), withSeen(transport)];
  const call = (to = pets, told?: string, init: HeadersInit = { "x-request-id": "r" }) => {
    tell = () => told;
    return to.unary({} as never, undefined, undefined, init, {} as never);
  };
  return { sent, pets, orders, call, transport, fail: () => (fails = true) };
}

test("what any answer told is sent with every later call, to whichever service", async () => {
  const { sent, orders, pets, call } = bench();
  await call();
  await call(pets, "db:05");
  await call(orders);
  await call(pets, undefined, new Headers({ "x-request-id": "r" }));
  await pets.stream({} as never, undefined, undefined, {}, {} as never);
  expect(sent).toEqual(["", "", "db:05", "db:05", "db:05"]);
});

test("it is the latest of what was told, however late an answer comes", async () => {
  const { sent, call, pets } = bench();
  for (const told of ["db:05", "db:09", "db:07", undefined]) await call(pets, told);
  await call();
  expect(sent.at(-1)).toBe("db:09");
});

test("of different data it is the latest of each", async () => {
  const { sent, call, pets, orders } = bench();
  await call(pets, "db:05");
  await call(orders, "other:03");
  await call(pets, "db:06");
  await call();
  expect(sent.at(-1)).toBe("db:06 other:03");
});

test("a refusal tells as well", async () => {
  const { sent, call, pets, fail } = bench();
  fail();
  await expect(call(pets, "db:05")).rejects.toThrow("it is gone");
  await expect(call()).rejects.toThrow();
  expect(sent.at(-1)).toBe("db:05");
});

test("who gets the answer is not told", async () => {
  const { call, pets, fail } = bench();
  expect([...(await call(pets, "db:05")).header.keys()]).toEqual(["etag"]);
  fail();
  const refusal = await call(pets, "db:06").catch(ConnectError.from);
  expect([...(refusal as ConnectError).metadata.keys()]).toEqual(["etag"]);
});
