import { Code, ConnectError, createClient, createRouterTransport, type Transport } from "@connectrpc/connect";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { CategoryInternalService, CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { EnvelopeService } from "#proto/petstore/internal/v1/envelope_service_pb.ts";
import { realTime } from "../clock.ts";
import { DomainError } from "../errors.ts";
import { SECRET_HEADER } from "./call.ts";
import { createDispatcher, type Handlers, implement } from "./dispatcher.ts";
import { coalescing } from "./envelope-client.ts";
import { envelopeRoutes } from "./envelope-server.ts";
import { reasonOf } from "./fault.ts";

type Handle = Handlers<typeof CategoryInternalService>["getCategoryState"];
const echo: Handle = ({ categoryId }) => ({ state: CategoryState.ACTIVE, op: categoryId });
const secret = "a secret that is long enough";

/** A service behind its dispatcher, and what arrived at it: the paths of HTTP requests, not of enveloped calls. */
function serve(handle: Handle = echo, options: { envelopes?: boolean; sent?: string } = {}) {
  const deps = { ...realTime, log: pino({ level: "silent" }) };
  const dispatcher = createDispatcher([implement(CategoryInternalService, { getCategoryState: handle })], {
    deps,
    secret,
  });
  const arrived: string[] = [];
  const transport = createRouterTransport(
    (router) => {
      dispatcher.routes(router);
      if (options.envelopes !== false) envelopeRoutes(router, dispatcher);
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
  return { client: createClient(CategoryInternalService, coalescing(transport)), transport, arrived };
}
const ask = (client: ReturnType<typeof serve>["client"], count: number, options = {}) =>
  Promise.allSettled(
    Array.from({ length: count }, (_, i) => client.getCategoryState({ categoryId: BigInt(i) }, options)),
  );
const failures = (results: PromiseSettledResult<unknown>[]) =>
  results.flatMap((result) => (result.status === "rejected" ? [ConnectError.from(result.reason)] : []));

describe("calls of one turn", () => {
  test("travel in one envelope, and each gets its own answer", async () => {
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

describe("an envelope", () => {
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
    const results = createClient(EnvelopeService, transport).call({ calls: [] })[Symbol.asyncIterator]();
    await expect(results.next()).rejects.toMatchObject({ code: Code.PermissionDenied });
  });

  test("is not sent again to a service that has none: its calls go plainly", async () => {
    const { client, arrived } = serve(echo, { envelopes: false });
    expect(failures(await ask(client, 2))).toEqual([]);
    expect(failures(await ask(client, 2))).toEqual([]);
    expect(arrived.filter((name) => name === "Call")).toHaveLength(1);
    expect(arrived.filter((name) => name === "GetCategoryState")).toHaveLength(4);
  });

  /** A service whose envelope answers what the test says. */
  const broken = (
    answer: () => AsyncIterable<{ results: { index: number; outcome: { case: "message"; value: Uint8Array } }[] }>,
  ): Transport => coalescing(createRouterTransport((router) => router.service(EnvelopeService, { call: answer })));
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

test("more calls under way than can be answered are turned away, and later ones are not", async () => {
  const held = Promise.withResolvers<void>();
  const { client } = serve(async ({ categoryId }) => {
    await held.promise;
    return { op: categoryId };
  });
  const crowd = ask(client, 10_000);
  const error = await client.getCategoryState({ categoryId: 1n }).then(() => undefined, ConnectError.from);
  expect(error && reasonOf(error)?.reason).toBe("OVERLOADED");
  held.resolve();
  expect(failures(await crowd)).toEqual([]);
  expect((await client.getCategoryState({ categoryId: 5n })).op).toBe(5n);
});
