/** What a full service refuses: callers from outside, and none of the system's own processes; what it does not begin. */
import { request } from "node:http";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import {
  CategoryService,
  ListCategoriesRequestSchema,
} from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { FEW_CALLS, MEMORY, START_LIMIT } from "../admission/limit.ts";
import type { Authentication } from "../auth/authentication.ts";
import { SECRET_HEADER } from "../call.ts";
import { createServiceTransport } from "../client/pipeline.ts";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  FrameType,
  frame,
  headers,
  rawHttp2,
  streams,
} from "../fixtures/frames.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { inProcessTransport } from "../in-process/transport.ts";
import { createDispatcher } from "./dispatcher.ts";
import type { Implementation, UnaryHandler } from "./handlers.ts";
import { createHealth, healthService } from "./health.ts";
import { startRpcServer } from "./server.ts";

/** However slow the machine is. */
const until = (isSo: () => boolean) => vi.waitUntil(isSo, { timeout: 50_000 });

const secret = "a secret that is long enough";
const { listCategories, updateCategory } = CategoryService.method;

function serve(clock = realTime.clock, authentication?: Authentication) {
  const calls: string[] = [];
  const held: PromiseWithResolvers<void>[] = [];
  const logged: { msg?: string; refused?: object }[] = [];
  const implementations = [CategoryService, CategoryInternalService].map((desc): Implementation => {
    const handler =
      (name: string): UnaryHandler =>
      async () => {
        calls.push(name);
        await held[0]?.promise;
        return {};
      };
    return {
      desc,
      handlers: Object.fromEntries(desc.methods.map(({ localName }) => [localName, handler(localName)])),
      isDiagnostic: false,
    };
  });
  const log = pino({ level: "warn" }, { write: (line: string) => logged.push(JSON.parse(line)) });
  const health = createHealth([]);
  const dispatcher = createDispatcher([...implementations, healthService(health)], {
    deps: { ...realTime, clock, log },
    secret,
    errors,
    authentication,
  });
  const list = (timeoutMs?: number) =>
    dispatcher.invoke(listCategories, create(ListCategoriesRequestSchema, {}), {
      headers: new Headers({ [SECRET_HEADER]: secret }),
      timeoutMs,
    });
  /** Calls of the system's own processes, until others have no room any more. */
  const fill = (count: number) => {
    held[0] = Promise.withResolvers<void>();
    const all = Array.from({ length: count }, () => list());
    return () => {
      held[0]?.resolve();
      return Promise.all(all);
    };
  };
  const start = async () => {
    const server = await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher, health });
    onTestFinished(() => server.close(0));
    return server;
  };
  return { calls, held, logged, dispatcher, health, list, fill, start };
}

const reason = async (call: Promise<unknown>) => {
  try {
    await call;
    return "answered";
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    return reasonOf(error)?.reason ?? Code[error.code];
  }
};

const protocols = {
  gRPC: createGrpcTransport,
  "gRPC-Web": (options: { baseUrl: string }) => createGrpcWebTransport({ ...options, httpVersion: "2" }),
  Connect: (options: { baseUrl: string }) => createConnectTransport({ ...options, httpVersion: "1.1" }),
};
const protocolNames = Object.keys(protocols) as (keyof typeof protocols)[];

describe("a full service", () => {
  test.each(protocolNames)("refuses a caller from outside over %s, until there is room again", async (protocol) => {
    const { calls, logged, fill, start } = serve();
    const { url: baseUrl } = await start();
    const client = createClient(CategoryService, protocols[protocol]({ baseUrl }));
    const end = fill(2 * START_LIMIT);
    const refused = await client.listCategories({}).catch(ConnectError.from);
    if (!(refused instanceof ConnectError)) return expect.unreachable();
    expect([refused.code, reasonOf(refused)?.reason]).toEqual([Code.Unavailable, "OVERLOADED"]);
    expect(refused.metadata.get("retry-after")).toBe("1");
    expect(calls.length).toBe(2 * START_LIMIT);
    expect(logged).toEqual([expect.objectContaining({ refused: { list: 1 } })]);
    await end();
    expect(await reason(client.listCategories({}))).toBe("answered");
  });

  test.each([
    ["links", true],
    ["plain RPCs", false],
    ["no network, in one process", undefined],
  ])("lets in what the gateway has let in, and what other services ask, over %s", async (_, link) => {
    const { calls, dispatcher, fill, start } = serve();
    const { url } = await start();
    const overNetwork = createServiceTransport({ urls: [url], secret, link, errors, ...realTime });
    onTestFinished(() => overNetwork.close());
    const transport = link === undefined ? inProcessTransport(() => dispatcher) : overNetwork;
    const end = fill(4 * START_LIMIT);
    const [gateway, pets] = [CategoryService, CategoryInternalService].map((desc) => createClient(desc, transport)) as [
      ReturnType<typeof createClient<typeof CategoryService>>,
      ReturnType<typeof createClient<typeof CategoryInternalService>>,
    ];
    const answers = [gateway.listCategories({}), pets.getCategoryState({ categoryId: 1n })].map(reason);
    await until(() => calls.length === 4 * START_LIMIT + 2);
    await end();
    expect(await Promise.all(answers)).toEqual(["answered", "answered"]);
  });

  test("keeps nobody out for one who asks for everything", async () => {
    const { calls, held, start } = serve();
    const { port } = await start();
    held[0] = Promise.withResolvers<void>();
    const list = (localAddress: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const path = `/${CategoryService.typeName}/ListCategories`;
        const headers = { "content-type": "application/json" };
        request({ host: "127.0.0.1", port, path, headers, localAddress, method: "POST" }, (answer) => {
          answer.resume().on("end", () => resolve(answer.statusCode));
        })
          .on("error", reject)
          .end("{}");
      });
    let refused = 0;
    const ask = async () => {
      if ((await list("127.0.0.2")) === 503) refused++;
    };
    const greedy: Promise<void>[] = [];
    // One after the other: those that are read together are let in before any of them is under way.
    while (greedy.length < 2 * START_LIMIT) {
      greedy.push(ask());
      while (calls.length + refused < greedy.length) await new Promise(setImmediate);
    }
    const most = calls.length;
    expect(most).toBe(START_LIMIT);
    const modest = Array.from({ length: 10 }, () => list("127.0.0.3"));
    await until(() => calls.length === most + 10);
    held[0].resolve();
    expect(new Set(await Promise.all(modest))).toEqual(new Set([200]));
    await Promise.all(greedy);
    expect(await list("127.0.0.2")).toBe(200);
  });

  test("goes on to let in what finishes something, where lists are refused", async () => {
    const { calls, fill, start } = serve();
    const { url: baseUrl } = await start();
    const client = createClient(CategoryService, createGrpcTransport({ baseUrl }));
    const end = fill(2 * START_LIMIT);
    expect(await reason(client.listCategories({}))).toBe("OVERLOADED");
    const change = reason(client.updateCategory({ categoryId: 1n, category: { name: "dogs" } }));
    await until(() => calls.includes(updateCategory.localName));
    await end();
    expect(await change).toBe("answered");
  });

  test("says how it is", async () => {
    const { fill, start } = serve();
    const { url: baseUrl } = await start();
    const client = createClient(Health, createGrpcTransport({ baseUrl }));
    const end = fill(4 * START_LIMIT);
    expect((await client.check({})).status).toBe(Status.SERVING);
    for await (const { status } of client.watch({})) {
      expect(status).toBe(Status.SERVING);
      break;
    }
    await end();
  });

  test("looks at neither credentials nor the message of what it refuses", async () => {
    let asked = 0;
    const authentication: Authentication = {
      async admit() {
        asked++;
        return { id: "ann" };
      },
      recheck: () => () => {},
      recheckAll: async () => {},
    };
    const { fill, start } = serve(realTime.clock, authentication);
    const { url } = await start();
    const post = async () => {
      const answer = await fetch(`${url}/${CategoryService.typeName}/ListCategories`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "no JSON",
      });
      return ((await answer.json()) as { code: string }).code;
    };
    const end = fill(2 * START_LIMIT);
    expect([await post(), asked]).toEqual(["unavailable", 0]);
    await end();
    expect([await post(), asked]).toEqual(["invalid_argument", 1]);
  });
});

describe("a call is not begun", () => {
  test("when its time is over", async () => {
    const { calls, list } = serve();
    expect([await reason(list(0)), await reason(list(-5))]).toEqual(["DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"]);
    expect(calls).toEqual([]);
  });

  test("when others wait and it has less time than it takes alone", async () => {
    let now = 1_000;
    const { calls, list, fill } = serve(() => now);
    for (let i = 0; i < MEMORY; i++) {
      const end = fill(1);
      now += 20;
      await end();
    }
    const end = fill(FEW_CALLS);
    const begun = calls.length;
    expect(await reason(list(10))).toBe("DEADLINE_EXCEEDED");
    expect(calls.length).toBe(begun);
    const enough = reason(list(30));
    await end();
    expect(await enough).toBe("answered");
  });
});

test("of calls that come together one begins at once, and the others when the event loop has read on", async () => {
  const { calls, start, list } = serve();
  const { port } = await start();
  await list(); // behind the first one requests can be validated
  calls.length = 0;
  const inFirstTurn = Promise.withResolvers<number>();
  const note = (name: string) => {
    if (calls.length === 0) setImmediate(() => inFirstTurn.resolve(calls.length));
    return Array.prototype.push.call(calls, name);
  };
  calls.push = note;
  const fields: readonly Field[] = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/petstore.category.v1.CategoryService/ListCategories"],
    [":authority", "a"],
    ["content-type", "application/json"],
  ];
  const all = streams(50);
  const together = rawHttp2(port);
  const data = { type: FrameType.DATA, flags: END_STREAM, payload: Buffer.from("{}") };
  together.send(...all.flatMap((stream) => [headers(stream, fields, END_HEADERS), frame({ ...data, stream })]));
  expect(await inFirstTurn.promise).toBe(1);
  await together.received(({ type, stream }) => type === FrameType.HEADERS && stream === all.at(-1));
  expect(calls.length).toBe(50);
});
