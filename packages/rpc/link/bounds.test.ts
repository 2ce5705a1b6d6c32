/** What waits on a link has bounds, on both sides. */
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { ConnectError } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import {
  ask,
  type Client,
  clientOf,
  failureOf,
  hello,
  METHOD,
  nextTurn,
  openTo,
  rawCaller,
  secret,
  startLinked,
  startRawService,
} from "../fixtures/linked.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import { createDispatcher } from "../server/dispatcher.ts";
import { implement } from "../server/handlers.ts";
import { limitCalls } from "./client.ts";
import { createLinkServer, type LinkLimits } from "./server.ts";

const reason = (call: Promise<unknown>) =>
  call.then(
    () => "answered",
    (error) => reasonOf(ConnectError.from(error))?.reason,
  );

describe("calls of one client", () => {
  const crowded = async (maxCalls: number, maxBytes?: number, link = true) => {
    const held = Promise.withResolvers<void>();
    const handle = async ({ categoryId }: { categoryId: bigint }) => {
      await held.promise;
      return { op: categoryId };
    };
    const { client } = await startLinked(handle, { limit: limitCalls(errors, maxCalls, maxBytes), link });
    return { call: (options = {}) => ask(client, 5, options), free: held.resolve };
  };

  test.each([
    ["over a link, together", true, 3],
    ["over a link, one by one", true, 1],
    ["by plain RPCs", false, 1],
  ])("are bounded, %s, and there is room again when they are answered", async (_, link, perTurn) => {
    const { call, free } = await crowded(9, undefined, link);
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

  test("are bounded by their bytes as well", async () => {
    const { call, free } = await crowded(100, 20);
    const crowd: Promise<unknown>[] = [];
    for (let bytes = 2; bytes <= 20; bytes += 2) crowd.push(call());
    expect(await reason(call())).toBe("OVERLOADED");
    free();
    await Promise.all(crowd);
    expect(await reason(call())).toBe("answered");
  });

  test("leave their place when their caller gives up", async () => {
    const { call, free } = await crowded(2);
    for (let round = 0; round < 5; round++) {
      const abort = new AbortController();
      const given = Array.from({ length: 2 }, () => failureOf(call({ signal: abort.signal })));
      await nextTurn();
      abort.abort();
      await Promise.all(given);
    }
    free();
    expect(await reason(call())).toBe("answered");
  });
});

test("what a service does not take is not sent, and not at all once it is given up", async () => {
  const opened = Promise.withResolvers<Parameters<Parameters<typeof startRawService>[0]>[0]>();
  const url = await startRawService((link) => {
    link.send(hello);
    opened.resolve(link);
  });
  const client = clientOf(openTo(url));
  const link = await callsUntil(client, opened.promise);
  await link.count(2);
  link.stream.pause();
  const abort = new AbortController();
  const headers = { "x-more": "x".repeat(30_000) };
  const calls: Promise<unknown>[] = [];
  for (let tick = 0; tick < 20; tick++) {
    for (let i = 0; i < 10; i++) calls.push(failureOf(ask(client, 1, { signal: abort.signal, headers })));
    await nextTurn();
  }
  abort.abort();
  await Promise.all(calls);
  link.stream.resume();
  void ask(client, 7).catch(() => {});
  const received = () => link.received.flatMap(({ calls }) => calls);
  while (received().at(-1)?.message[1] !== 7) await link.count(link.received.length + 1);
  expect(received().length).toBeLessThan(40);
});

async function callsUntil<T>(client: Client, opened: Promise<T>): Promise<T> {
  void ask(client, 1).catch(() => {});
  return opened;
}

describe("a service", () => {
  /** One with room for so much, and a link to it. */
  async function start(limits: LinkLimits) {
    const held = Promise.withResolvers<void>();
    const begun: bigint[] = [];
    const log = pino({ level: "silent" });
    const handlers = {
      async getCategoryState({ categoryId }: { categoryId: bigint }) {
        begun.push(categoryId);
        await held.promise;
        return { op: categoryId };
      },
    };
    const implementations = [implement(CategoryInternalService, handlers)];
    const dispatcher = createDispatcher(implementations, { deps: { ...realTime, log }, secret, errors });
    const links = createLinkServer({ dispatcher, log, limits });
    const { url } = await startOnePort(
      (request, response) => links.serve(request, response),
      {},
      { knowsPeer: () => true },
    );
    const link = rawCaller(url);
    link.send({ ...hello, methods: [{ number: 1, name: METHOD }] });
    await link.count(1);
    return { link, begun, free: held.resolve };
  }
  /** A ping is answered after what was sent before it has arrived. */
  const ping = ({ session }: ClientHttp2Stream) =>
    new Promise<void>((resolve) => (session as ClientHttp2Session).ping(() => resolve()));
  const answered = (link: Awaited<ReturnType<typeof start>>["link"]) =>
    link.received.flatMap(({ answers }) => answers).length;

  test.each([
    ["calls", { calls: 4, bytes: 1_000_000 }, 5],
    ["bytes", { calls: 1000, bytes: 20 }, 11],
  ])(
    "reads no more of a link when too many %s are under way, and goes on when they are done",
    async (_, limits, most) => {
      const { link, begun, free } = await start(limits);
      for (let id = 1; id <= 20; id++) {
        link.send({ calls: [{ id, method: 1, message: new Uint8Array([8, id]) }] });
        for (let i = 0; i < 3; i++) await ping(link.stream);
      }
      expect(begun).toHaveLength(most);
      free();
      while (answered(link) < 20) await link.count(link.received.length + 1);
      expect(begun).toHaveLength(20);
    },
  );
});
