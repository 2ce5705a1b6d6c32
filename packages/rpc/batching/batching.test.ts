import { create, toBinary } from "@bufbuild/protobuf";
import {
  type CallOptions,
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Transport,
} from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { errors, reasonOf } from "../../../errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import {
  CategoryInternalService,
  CategoryState,
} from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { SECRET_HEADER } from "../call.ts";
import { limitCalls } from "../client/call-limit.ts";
import { createServiceTransport } from "../client/pipeline.ts";
import { DomainError } from "../errors/domain-error.ts";
import { BatchService } from "../gen/batching/v1/batch_service_pb.ts";
import { createDispatcher } from "../server/dispatcher.ts";
import { type Handlers, implement } from "../server/handlers.ts";
import { createHealth } from "../server/health.ts";
import { MAX_MESSAGE_BYTES } from "../server/message-limit.ts";
import { startRpcServer } from "../server/server.ts";
import { createTurns, type Turns, WORK_PER_TURN } from "../server/turns.ts";
import { withBatching } from "./client.ts";
import { batchRoutes } from "./server.ts";

type Handle = Handlers<typeof CategoryInternalService>["getCategoryState"];
const echo: Handle = ({ categoryId }) => ({ state: CategoryState.ACTIVE, op: categoryId });
const secret = "a secret that is long enough";

/** A service behind its dispatcher, and what arrived at it: the paths of HTTP requests, not of batched calls. */
function serve(handle: Handle = echo, options: { batches?: boolean; sent?: string; turns?: Turns } = {}) {
  const deps = { ...realTime, log: pino({ level: "silent" }) };
  const dispatcher = createDispatcher([implement(CategoryInternalService, { getCategoryState: handle })], {
    deps,
    secret,
    errors,
  });
  const arrived: string[] = [];
  const transport = createRouterTransport(
    (router) => {
      dispatcher.routes(router);
      if (options.batches !== false) batchRoutes(router, dispatcher, options.turns);
    },
    {
      transport: {
        interceptors: [
          (next) => (request) => {
            arrived.push(request.method.name);
            request.header.set(SECRET_HEADER, options.sent ?? secret);
            return next(request);
          },
        ],
      },
    },
  );
  return {
    client: createClient(CategoryInternalService, withBatching(transport, limitCalls(errors))),
    transport,
    arrived,
  };
}
const ask = (client: ReturnType<typeof serve>["client"], count: number, options = {}) =>
  Promise.allSettled(
    Array.from({ length: count }, (_, i) => client.getCategoryState({ categoryId: BigInt(i) }, options)),
  );
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const failures = (results: PromiseSettledResult<unknown>[]) =>
  results.flatMap((result) => (result.status === "rejected" ? [ConnectError.from(result.reason)] : []));

test("the calls of a batch are begun in turns", async () => {
  let begun = 0;
  const inEachTurn: number[] = [];
  const turns = createTurns((turn) =>
    setImmediate(() => {
      begun = 0;
      turn();
      inEachTurn.push(begun);
    }),
  );
  const handle: Handle = (request, call) => {
    begun++;
    return echo(request, call);
  };
  const results = await ask(serve(handle, { turns }).client, 2 * WORK_PER_TURN + 1);
  expect(failures(results)).toEqual([]);
  expect(inEachTurn).toEqual([WORK_PER_TURN, WORK_PER_TURN, 1]);
});

describe("calls of one tick", () => {
  test("travel in one batch, and each gets its own answer", async () => {
    const { client, arrived } = serve();
    const results = await ask(client, 50);
    expect(results.map((r) => r.status === "fulfilled" && r.value.op)).toEqual(results.map((_, i) => BigInt(i)));
    expect(arrived).toEqual(["Call"]);
  });

  test("are cut at 256 calls", async () => {
    const { client, arrived } = serve();
    expect(failures(await ask(client, 300))).toEqual([]);
    expect(arrived).toEqual(["Call", "Call"]);
  });

  test("a lone call goes as a plain one", async () => {
    const { client, arrived } = serve();
    await client.getCategoryState({ categoryId: 1n });
    await client.getCategoryState({ categoryId: 2n });
    expect(arrived).toEqual(["GetCategoryState", "GetCategoryState"]);
  });

  test("keep their own headers both ways", async () => {
    const { client } = serve(({ categoryId }, call) => {
      call.responseHeaders.set("answered-to", call.requestId);
      return { op: categoryId };
    });
    const seen = await Promise.all(
      ["one", "two"].map(async (id) => {
        let answer: string | null = null;
        const onHeader = (headers: Headers) => {
          answer = headers.get("answered-to");
        };
        await client.getCategoryState({ categoryId: 1n }, { headers: { "x-request-id": id }, onHeader });
        return answer;
      }),
    );
    expect(seen).toEqual(["one", "two"]);
  });

  test("fail one by one, with reason, message and details", async () => {
    const { client } = serve(({ categoryId }) => {
      if (categoryId % 2n === 1n) throw new DomainError("CATEGORY_NOT_FOUND", `no ${categoryId}`);
      return { op: categoryId };
    });
    const failed = failures(await ask(client, 4));
    expect(failed.map((e) => [e.code, e.rawMessage, reasonOf(e)?.reason])).toEqual([
      [Code.NotFound, "no 1", "CATEGORY_NOT_FOUND"],
      [Code.NotFound, "no 3", "CATEGORY_NOT_FOUND"],
    ]);
  });

  test("are answered as each is ready: a slow one keeps nobody waiting and has its own time limit", async () => {
    const slow = Promise.withResolvers<void>();
    const { client } = serve(async ({ categoryId }) => {
      if (categoryId === 0n) await slow.promise;
      return { op: categoryId };
    });
    const late = client.getCategoryState({ categoryId: 0n }, { timeoutMs: 50 });
    const quick = client.getCategoryState({ categoryId: 7n }, { timeoutMs: 10_000 });
    expect((await quick).op).toBe(7n);
    const error = await late.then(() => undefined, ConnectError.from);
    expect(error?.code).toBe(Code.DeadlineExceeded);
    slow.resolve();
  });

  test("can be cancelled one by one", async () => {
    const held = Promise.withResolvers<void>();
    const { client } = serve(async ({ categoryId }) => {
      await held.promise;
      return { op: categoryId };
    });
    const abort = new AbortController();
    const cancelled = client.getCategoryState({ categoryId: 1n }, { signal: abort.signal });
    const other = client.getCategoryState({ categoryId: 2n });
    await new Promise((resolve) => setTimeout(resolve, 10));
    abort.abort();
    expect((await cancelled.then(() => undefined, ConnectError.from))?.code).toBe(Code.Canceled);
    held.resolve();
    expect((await other).op).toBe(2n);
  });
});

describe("a batch", () => {
  test("is refused without the secret, and nothing in it runs", async () => {
    let ran = 0;
    const { client } = serve(
      ({ categoryId }) => {
        ran++;
        return { op: categoryId };
      },
      { sent: "a guess" },
    );
    expect(failures(await ask(client, 3)).map((e) => e.code)).toEqual(Array(3).fill(Code.PermissionDenied));
    expect(ran).toBe(0);
  });

  test("is refused as a whole to whoever is no process of the petstore, even an empty one", async () => {
    const { transport } = serve(echo, { sent: "a guess" });
    const results = createClient(BatchService, transport).call({ calls: [] })[Symbol.asyncIterator]();
    await expect(results.next()).rejects.toMatchObject({ code: Code.PermissionDenied });
  });

  test("is not sent again to a service that has none: its calls go plainly", async () => {
    const { client, arrived } = serve(echo, { batches: false });
    expect(failures(await ask(client, 2))).toEqual([]);
    expect(failures(await ask(client, 2))).toEqual([]);
    expect(arrived.filter((name) => name === "Call")).toHaveLength(1);
    expect(arrived.filter((name) => name === "GetCategoryState")).toHaveLength(4);
  });

  /** A service whose batch answers what the test says. */
  const broken = (
    answer: () => AsyncIterable<{ results: { index: number; outcome: { case: "message"; value: Uint8Array } }[] }>,
  ): Transport =>
    withBatching(
      createRouterTransport((router) => router.service(BatchService, { call: answer })),
      limitCalls(errors),
    );
  const result = (index: number) => ({ index, outcome: { case: "message" as const, value: new Uint8Array() } });

  test("that breaks off fails what it has not answered, and only that", async () => {
    const transport = broken(async function* () {
      yield { results: [result(1)] };
      throw new ConnectError("gone", Code.Unavailable);
    });
    const results = await ask(createClient(CategoryInternalService, transport), 3);
    expect(results.map((r) => r.status)).toEqual(["rejected", "fulfilled", "rejected"]);
    expect(failures(results).map((e) => e.code)).toEqual([Code.Unavailable, Code.Unavailable]);
  });

  test("that ends early fails what it has not answered", async () => {
    const transport = broken(async function* () {
      yield { results: [result(0)] };
    });
    const results = await ask(createClient(CategoryInternalService, transport), 2);
    expect(failures(results).map((e) => e.code)).toEqual([Code.Unavailable]);
  });

  test.each([[0], [9]])("that answers a call twice, or none (index %i), is not trusted further", async (index) => {
    const transport = broken(async function* () {
      yield { results: [result(0)] };
      yield { results: [result(index)] };
      yield { results: [result(1)] };
    });
    const results = await ask(createClient(CategoryInternalService, transport), 2);
    expect(results.map((r) => r.status)).toEqual(["fulfilled", "rejected"]);
  });
});

describe("messages of any legal size", () => {
  const { getCategory } = CategoryService.method;
  /** A category service on a real connection, with descriptions of so many bytes. */
  async function open(describe: (id: bigint) => number) {
    const stack = new AsyncDisposableStack();
    const log = pino({ level: "silent" });
    const answer = (id: bigint) => ({ category: { id, description: "x".repeat(describe(id)) } });
    const handlers = {
      getCategory: ({ categoryId }: { categoryId: bigint }) => answer(categoryId),
      createCategory: () => answer(0n),
    };
    const implementation = implement(
      CategoryService,
      new Proxy(handlers, { get: (known, name) => known[name as "getCategory"] ?? (() => ({})) }) as never,
    );
    const dispatcher = createDispatcher([implementation], { deps: { ...realTime, log }, secret, errors });
    const health = createHealth([]);
    const server = stack.use(await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher, health }));
    const transport = stack.adopt(createServiceTransport({ urls: [server.url], secret, errors, ...realTime }), (t) =>
      t.close(),
    );
    const client = createClient(CategoryService, transport);
    const read = (ids: readonly number[]) =>
      Promise.allSettled(ids.map((id) => client.getCategory({ categoryId: BigInt(id) })));
    const create = (name: string) => client.createCategory({ category: { name } });
    return { read, create, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }
  /** So that the whole message has exactly the size of the limit. */
  const full = (() => {
    const frame = toBinary(
      getCategory.output,
      create(getCategory.output, { category: { id: 1n, description: "x".repeat(MAX_MESSAGE_BYTES - 100) } }),
    ).length;
    return MAX_MESSAGE_BYTES - 100 + (MAX_MESSAGE_BYTES - frame);
  })();

  test("are answered in one tick, however many are ready", async () => {
    await using service = await open((id) => 100_000 + Number(id));
    const results = await service.read(Array.from({ length: 50 }, (_, id) => id));
    expect(failures(results)).toEqual([]);
    for (const [id, result] of results.entries())
      expect(result.status === "fulfilled" && result.value.category?.description?.length).toBe(100_000 + id);
  });

  test("are answered in a batch as large as alone", async () => {
    await using service = await open(() => full);
    expect(failures(await service.read([1]))).toEqual([]);
    expect(failures(await service.read([1, 2, 3]))).toEqual([]);
  });

  test("one that is larger than any may be fails by itself", async () => {
    await using service = await open((id) => (id === 1n ? full + 1 : 10));
    expect(failures(await service.read([1])).map(({ code }) => code)).toEqual([Code.ResourceExhausted]);
    const results = await service.read([1, 2, 3]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(failures(results).map(({ code }) => code)).toEqual([Code.ResourceExhausted]);
  });

  test("are asked for in one tick, however many there are", async () => {
    await using service = await open(() => 10);
    const names = Array.from({ length: 300 }, () => "ä".repeat(200));
    expect(failures(await Promise.allSettled(names.map(service.create)))).toEqual([]);
  });
});

describe("calls under way", () => {
  const crowded = (...bounds: [calls: number, bytes?: number]) => {
    const held = Promise.withResolvers<void>();
    const { transport } = serve(async ({ categoryId }) => {
      await held.promise;
      return { op: categoryId };
    });
    const client = createClient(CategoryInternalService, withBatching(transport, limitCalls(errors, ...bounds)));
    const call = (options?: CallOptions) => client.getCategoryState({ categoryId: 5n }, options);
    return { call, free: held.resolve };
  };
  const reason = (call: Promise<unknown>) =>
    call.then(
      () => "answered",
      (error) => reasonOf(ConnectError.from(error))?.reason,
    );

  test.each([
    ["that travel together", 3],
    ["that go one by one", 1],
  ])("are bounded, those %s, and there is room again when they are answered", async (_, perTurn) => {
    const { call, free } = crowded(9);
    const crowd: Promise<unknown>[] = [];
    while (crowd.length < 9) {
      for (let i = 0; i < perTurn; i++) crowd.push(call());
      await nextTurn();
    }
    expect(await reason(call())).toBe("OVERLOADED");
    free();
    await Promise.all(crowd);
    expect(await reason(call())).toBe("answered");
  });

  test("are bounded, those that are too big for a batch too", async () => {
    const held = { unary: () => new Promise(() => {}) } as unknown as Transport;
    const client = createClient(CategoryService, withBatching(held, limitCalls(errors, 1)));
    const call = () => client.createCategory({ category: { description: "x".repeat(100_000) } });
    void call();
    expect(await reason(call())).toBe("OVERLOADED");
  });

  test("are bounded by their bytes as well", async () => {
    const { call, free } = crowded(100, 20);
    const crowd: Promise<unknown>[] = [];
    for (let bytes = 2; bytes <= 20; bytes += 2) crowd.push(call());
    expect(await reason(call())).toBe("OVERLOADED");
    free();
    await Promise.all(crowd);
    expect(await reason(call())).toBe("answered");
  });

  test.each([
    ["together with another", 2],
    ["alone", 1],
  ])("leave their place when their caller gives up, %s", async (_, together) => {
    const { call, free } = crowded(2);
    for (let round = 0; round < 5; round++) {
      const abort = new AbortController();
      const given = Array.from({ length: together }, () => call({ signal: abort.signal }).catch(ConnectError.from));
      await nextTurn();
      abort.abort();
      for (const error of await Promise.all(given)) expect(error).toMatchObject({ code: Code.Canceled });
    }
    free();
    expect(await reason(call())).toBe("answered");
  });
});
