/** Calls within a process end in all the ways in which those to another one do; `link/same-as-plain.test.ts` compares them. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { CategoryInternalService } from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import { stillRunning } from "../client/failed-call.ts";
import { DomainError } from "../domain-error.ts";
import { RpcError } from "../errors.ts";
import { clientOf, failureOf, type Handle } from "../fixtures/linked.ts";
import { TickerService, type Watch } from "../fixtures/ticker.ts";
import { createDispatcher, type Dispatcher } from "../server/dispatcher.ts";
import { type Implementation, implement } from "../server/handlers.ts";
import { onAbort } from "../server/until.ts";
import { inProcessTransport } from "./transport.ts";

const log = pino({ level: "silent" });

/** A client of the service, and the service's end of the calls. */
function open(implementation: Implementation) {
  const dispatcher = createDispatcher([implementation], { deps: { ...realTime, log }, errors });
  return { dispatcher, transport: inProcessTransport(() => dispatcher) };
}
const clientTo = (handle: Handle) =>
  clientOf(open(implement(CategoryInternalService, { getCategoryState: handle })).transport);

describe("a unary call", () => {
  test("of an internal service is one of the system's own, for the caller that it names", async () => {
    const client = clientTo((_request, { caller, responseHeaders }) => {
      responseHeaders.set("for", caller);
      return {};
    });
    let who: string | null = null;
    const onHeader = (headers: Headers) => {
      who = headers.get("for");
    };
    await client.getCategoryState({ categoryId: 1n }, { headers: { "x-internal-caller": "ann" }, onHeader });
    expect(who).toBe("ann");
  });

  test("fails with an error that a service which calls another does not take for its own", async () => {
    const client = clientTo(() => {
      throw new DomainError("CATEGORY_NOT_FOUND", "no 1", { path: "category_id", cause: new Error("a secret") });
    });
    const error = await failureOf(client.getCategoryState({ categoryId: 1n }));
    expect([error.code, error.rawMessage, reasonOf(error)?.reason]).toEqual([
      Code.NotFound,
      "category_id: no 1",
      "CATEGORY_NOT_FOUND",
    ]);
    expect(error).not.toBeInstanceOf(RpcError);
    expect(error.cause).toBeUndefined();
  });

  test("is not admitted again: services that call each other never wait for each other's room", async () => {
    const CHAINS = 50;
    let waiting = 0;
    const all = Promise.withResolvers<void>();
    const serviceThatCalls = (other: () => Dispatcher) => {
      const next = clientOf(inProcessTransport(other));
      const getCategoryState: Handle = async ({ categoryId }) => {
        if (categoryId > 0n) return next.getCategoryState({ categoryId: categoryId - 1n });
        if (++waiting === CHAINS) all.resolve();
        await all.promise;
        return {};
      };
      const service = implement(CategoryInternalService, { getCategoryState });
      return createDispatcher([service], { deps: { ...realTime, log }, errors, maxCalls: 1 });
    };
    const pet: Dispatcher = serviceThatCalls(() => inventory);
    const inventory: Dispatcher = serviceThatCalls(() => pet);
    const client = clientOf(inProcessTransport(() => pet));
    await Promise.all(Array.from({ length: CHAINS }, () => client.getCategoryState({ categoryId: 5n })));
  });

  test("is over with its time", async () => {
    const client = clientTo(() => new Promise(() => {}));
    const error = await failureOf(client.getCategoryState({ categoryId: 1n }, { timeoutMs: 50 }));
    expect([error.code, reasonOf(error)?.reason]).toEqual([Code.DeadlineExceeded, "DEADLINE_EXCEEDED"]);
  });

  test("that is given up before is never begun", async () => {
    let isBegun = false;
    const client = clientTo(() => {
      isBegun = true;
      return {};
    });
    const error = await failureOf(client.getCategoryState({ categoryId: 1n }, { signal: AbortSignal.abort() }));
    expect([error.code, isBegun]).toEqual([Code.Canceled, false]);
  });

  test("that is given up counts as running until the service is done with it", async () => {
    const begun = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const client = clientTo(async () => {
      begun.resolve();
      await held.promise;
      return {};
    });
    const leaving = new AbortController();
    const failed = failureOf(client.getCategoryState({ categoryId: 1n }, { signal: leaving.signal }));
    await begun.promise;
    leaving.abort();
    const error = await failed;
    expect(error.code).toBe(Code.Canceled);
    let isOver = false;
    const over = stillRunning(error)?.then(() => {
      isOver = true;
    });
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    held.resolve();
    await over;
    expect(isOver).toBe(true);
  });
});

describe("a stream", () => {
  const ticker = (watch: Watch) => {
    const { dispatcher, transport } = open(implement(TickerService, { watch, wait: () => ({}) }));
    return { dispatcher, transport, client: createClient(TickerService, transport) };
  };

  test("gives one message after the other, to its own request", async () => {
    const { client } = ticker(async function* ({ text }) {
      yield { text: `${text} 1` };
      yield { text: `${text} 2` };
    });
    const texts = await Array.fromAsync(client.watch({ text: "tick" }), ({ text }) => text);
    expect(texts).toEqual(["tick 1", "tick 2"]);
  });

  test("produces no more than is read, and ends with its reader", async () => {
    let produced = 0;
    const ended = Promise.withResolvers<void>();
    const { transport } = ticker(async function* () {
      try {
        for (;;) yield { text: `${++produced}` };
      } finally {
        ended.resolve();
      }
    });
    const { watch } = TickerService.method;
    // Connect's client would not pass on that its reader leaves.
    const { message } = await transport.stream(watch, undefined, undefined, undefined, createAsyncIterable([{}]));
    for await (const { text } of message) if (text === "2") break;
    await ended.promise;
    expect(produced).toBe(2);
  });

  test("ends when its caller gives it up, even while the service has nothing to say", async () => {
    const leaving = new AbortController();
    const { client } = ticker(async function* (_request, { signal }) {
      yield { text: "1" };
      await new Promise<void>((resolve) => onAbort(signal, resolve));
    });
    const read = async () => {
      for await (const _ of client.watch({}, { signal: leaving.signal })) leaving.abort();
    };
    const error = await read().then(() => expect.fail("it has no end"), ConnectError.from);
    expect(error.code).toBe(Code.Canceled);
  });

  test("fails with the error of the service, and when the service stops", async () => {
    const failing = ticker(async function* () {
      yield { text: "1" };
      throw new DomainError("CATEGORY_NOT_FOUND", "gone");
    });
    const error = await failureOf(Array.fromAsync(failing.client.watch({})));
    expect([error.code, error.rawMessage]).toEqual([Code.NotFound, "gone"]);
    expect(error).not.toBeInstanceOf(RpcError);

    const { client, dispatcher } = ticker(async function* (_request, { draining }) {
      yield { text: "1" };
      await new Promise<void>((resolve) => onAbort(draining, resolve));
    });
    const texts: string[] = [];
    for await (const { text } of client.watch({})) {
      texts.push(text);
      dispatcher.drain();
    }
    expect(texts).toEqual(["1"]);
  });
});
