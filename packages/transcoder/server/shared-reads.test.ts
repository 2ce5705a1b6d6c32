import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as tick } from "node:timers/promises";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { type FastifyRequest, fastify } from "fastify";
import { afterEach, describe, expect, test } from "vitest";
import { compileLibrary, compileProtos, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import { serverOptions, transcoder } from "../index.ts";
import { NEVER_WAIT, type Share, shareReads } from "./shared-reads.ts";
import { unshared } from "./unary.ts";

/** A turn of the event loop that ends, and time that passes, when they are told to. */
function sharing() {
  const ends: (() => void)[] = [];
  const alarms = new Map<() => void, number>();
  const calls: { deadline: number; signal: AbortSignal; end: (answer: string) => void; fail: (why: Error) => void }[] =
    [];
  const join = shareReads<string>({
    whenTurnEnds: (make) => void ends.push(make),
    after(ms, work) {
      alarms.set(work, ms);
      return () => alarms.delete(work);
    },
  });
  const call = () => (deadline: number, signal: AbortSignal) =>
    new Promise<string>((end, fail) => calls.push({ deadline, signal, end, fail }));
  return {
    join,
    calls,
    alarms,
    ask: (key: string, { id = "id", deadline = 1000, limitMs = 1000 } = {}) =>
      join(key, { id, deadline, limitMs }, call),
    endTurn() {
      for (const make of ends.splice(0)) make();
    },
    async end(call: number, answer: string) {
      calls[call]?.end(answer);
      await tick();
    },
    passTime() {
      for (const work of [...alarms.keys()]) work();
    },
  };
}
const times = <R>(count: number, work: () => R): R[] => Array.from({ length: count }, work);
const answersOf = (shares: readonly Share<string>[]) => Promise.all(shares.map(({ answer }) => answer));

describe("callers of one key", () => {
  test("in one turn are answered by one call, made at its end", async () => {
    const { ask, endTurn, end, calls } = sharing();
    const shares = [ask("a"), ask("a"), ask("b"), ask("a")];
    expect(calls).toHaveLength(0);
    endTurn();
    await end(0, "one");
    await end(1, "two");
    expect(await answersOf(shares)).toEqual(["one", "one", "two", "one"]);
    expect(calls).toHaveLength(2);
  });

  test("never join a call that was made: it may have read before they asked", async () => {
    const { ask, endTurn, end } = sharing();
    const first = ask("a");
    endTurn();
    const second = ask("a");
    endTurn();
    await end(1, "new");
    await end(0, "old");
    expect([await first.answer, await second.answer]).toEqual(["old", "new"]);
  });

  test("have the time of the one who waits longest", () => {
    const { ask, endTurn, calls } = sharing();
    for (const deadline of [2000, 3000, 1000]) ask("a", { deadline });
    endTurn();
    expect(calls).toMatchObject([{ deadline: 3000 }]);
  });

  test("hear in whose name it is made: the first one's", () => {
    const { ask, endTurn } = sharing();
    const shares = ["first", "second"].map((id) => ask("a", { id }));
    endTurn();
    shares.push(ask("a", { id: "third" }));
    expect(shares.map(({ calledAs }) => calledAs)).toEqual(["first", "first", "third"]);
  });

  test("lose it only when all have gone", () => {
    const { ask, endTurn, calls } = sharing();
    const [first, second] = [ask("a"), ask("a")];
    endTurn();
    first.leave();
    expect(calls[0]?.signal.aborted).toBe(false);
    second.leave();
    expect(calls[0]?.signal.aborted).toBe(true);
  });

  test("fail together, and one whose request is wrong alone", async () => {
    const { join, ask, endTurn, calls } = sharing();
    const refuse = () => {
      throw new Error("wrong");
    };
    expect(() => join("a", { id: "id", deadline: 1000, limitMs: 1000 }, refuse)).toThrow("wrong");
    const [good, ...failing] = [ask("a"), ask("b"), ask("b")];
    endTurn();
    calls[0]?.end("fine");
    calls[1]?.fail(new Error("down"));
    expect(await good?.answer).toBe("fine");
    for (const { answer } of failing) await expect(answer).rejects.toThrow("down");
  });
});

describe("callers of one key, of which some are under way,", () => {
  /** As many are under way as let others wait. */
  function busy() {
    const made = sharing();
    const shares = times(NEVER_WAIT, () => made.ask("a"));
    made.endTurn();
    return { ...made, shares };
  }

  test("do not wait as long as they are few", () => {
    const { ask, endTurn, calls, alarms } = sharing();
    for (let callers = 1; callers <= NEVER_WAIT; callers++) {
      ask("a");
      endTurn();
      expect(calls).toHaveLength(callers);
    }
    expect(alarms.size).toBe(0);
  });

  test("are called for once, where a call ends in the turn in which they ask", async () => {
    const { ask, endTurn, end, calls } = sharing();
    ask("a");
    endTurn();
    ask("a");
    await end(0, "old");
    endTurn();
    expect(calls).toHaveLength(2);
  });

  test("wait for the end of a call where they are more, and share the next one, which reads after all of them asked", async () => {
    const { ask, endTurn, end, calls, shares, alarms } = busy();
    const waiting = times(10, () => ask("a"));
    endTurn();
    expect(calls).toHaveLength(1);
    await end(0, "old");
    expect(calls).toHaveLength(2);
    const later = ask("a");
    await end(1, "new");
    endTurn();
    await end(2, "newest");
    expect(await answersOf([...shares, ...waiting, later])).toEqual([
      ...times(NEVER_WAIT, () => "old"),
      ...times(10, () => "new"),
      "newest",
    ]);
    expect(alarms.size).toBe(0);
  });

  test("do not wait for those of another key", () => {
    const { ask, endTurn, calls } = busy();
    ask("b");
    endTurn();
    expect(calls).toHaveLength(2);
  });

  test("wait no longer for a call that fails", async () => {
    const { ask, calls, shares } = busy();
    ask("a");
    calls[0]?.fail(new Error("down"));
    for (const { answer } of shares) await expect(answer).rejects.toThrow("down");
    expect(calls).toHaveLength(2);
  });

  test("wait no longer for one that may be lost, and its end makes no second call for them", async () => {
    const { ask, passTime, end, calls, alarms } = busy();
    const late = ask("a");
    expect([...alarms.values()]).toEqual([100]);
    passTime();
    expect(calls).toHaveLength(2);
    await end(0, "old");
    await end(1, "new");
    expect(await late.answer).toBe("new");
    expect(calls).toHaveLength(2);
  });

  test("wait for a small part of their time at most", () => {
    const { ask, alarms } = busy();
    ask("a", { limitMs: 50 });
    expect([...alarms.values()]).toEqual([5]);
  });

  test("never wait again when all is over", async () => {
    const { ask, endTurn, end, calls } = busy();
    const gone = ask("a");
    gone.leave();
    await end(0, "old");
    expect(calls[1]?.signal.aborted).toBe(true);
    calls[1]?.fail(new Error("aborted"));
    await expect(gone.answer).rejects.toThrow("aborted");
    ask("a");
    endTurn();
    expect(calls).toHaveLength(3);
  });

  test("may join those of whom all others have gone", async () => {
    const { ask, end, calls } = busy();
    ask("a").leave();
    const stays = ask("a");
    await end(0, "old");
    expect(calls[1]?.signal.aborted).toBe(false);
    await end(1, "new");
    expect(await stays.answer).toBe("new");
  });

  test("are not forgotten while hundreds of other keys come and go", async () => {
    const { ask, endTurn, end, calls } = busy();
    for (let i = 1; i <= 300; i++) {
      const other = ask(`key ${i}`);
      endTurn();
      await end(i, `answer ${i}`);
      expect(await other.answer).toBe(`answer ${i}`);
    }
    ask("a");
    endTurn();
    expect(calls).toHaveLength(301); // it waits for the first ones
  });
});

test("a call of one caller is made at once, and ends when it has gone", async () => {
  let signal: AbortSignal | undefined;
  const { answer, leave } = unshared({ id: "id", deadline: 1000, limitMs: 1000 }, async (_, given) => {
    signal = given;
    return "done";
  });
  expect(signal?.aborted).toBe(false);
  expect(await answer).toBe("done");
  leave();
  expect(signal?.aborted).toBe(true);
});

describe("requests of one turn", () => {
  const service = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
  let server: Awaited<ReturnType<typeof serve>>;
  afterEach(() => server.app.close());

  type Asked = { url: string; headers?: Record<string, string> };
  const byCaller = ({ headers }: FastifyRequest) => String(headers["x-caller"]) || undefined;

  /** Sends them together. Answers with the answers, and with the ids of the requests that the service was called for. */
  async function together(requests: readonly Asked[], fails = false) {
    const called: (string | null)[] = [];
    const getBook = (_: unknown, { requestHeader }: { requestHeader: Headers }) => {
      called.push(requestHeader.get("x-request-id"));
      if (fails) throw new ConnectError("there is none", Code.NotFound);
      return { title: "Emma" };
    };
    server = await serve(service, { getBook } as never, { answerDependsOn: byCaller, ignoreUnknown: true });
    const answers = await Promise.all(
      requests.map(({ url, headers: more }, i) => {
        const headers = { host: "localhost", "x-request-id": `request-${i}`, "x-caller": "ann", ...more };
        return server.app.inject({ url, headers });
      }),
    );
    return { answers, called };
  }

  test("that are the same are one call; each answer has the id of its own request", async () => {
    const url = "/books/1";
    const { answers, called } = await together([{ url }, { url }, { url }]);
    expect(called).toEqual(["request-0"]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(answers.map(({ headers }) => headers["x-request-id"])).toEqual(["request-0", "request-1", "request-2"]);
  });

  test("are answered by what was there when they came, and by nothing older", async () => {
    const { promise: isRead, resolve: tellRead } = Promise.withResolvers<void>();
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    let title = "Emma";
    const getBook = async () => {
      const book = { title };
      tellRead();
      await mayEnd;
      return book;
    };
    server = await serve(service, { getBook } as never, { answerDependsOn: byCaller, ignoreUnknown: true });
    const ask = () => server.app.inject({ url: "/books/1", headers: { host: "localhost", "x-caller": "ann" } });
    const before = times(NEVER_WAIT, ask);
    await isRead;
    title = "Persuasion";
    const after = times(3, ask);
    end();
    const titles = (await Promise.all([...before, ...after])).map((answer) => answer.json().title);
    expect(titles).toEqual([...before.map(() => "Emma"), ...after.map(() => "Persuasion")]);
  });

  test("that fail are one call, too", async () => {
    const { answers, called } = await together([{ url: "/books/1" }, { url: "/books/1" }], true);
    expect(called).toHaveLength(1);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([404, 404]);
  });

  test.each([
    ["another target", { url: "/books/2" }],
    ["another query", { url: "/books/1?x=1" }],
    ["another caller", { url: "/books/1", headers: { "x-caller": "bob" } }],
    ["another time limit", { url: "/books/1", headers: { "x-server-timeout": "20" } }],
    ["another handling of what is unknown", { url: "/books/1", headers: { prefer: "handling=strict" } }],
  ])("with %s are calls of their own", async (_, other) => {
    const { called } = await together([{ url: "/books/1" }, other, { url: "/books/1" }]);
    expect(called.sort()).toEqual(["request-0", "request-1"]);
  });

  test("of which it is not known what their answers depend on are calls of their own", async () => {
    const asked = { url: "/books/1", headers: { "x-caller": "" } };
    expect((await together([asked, asked])).called.sort()).toEqual(["request-0", "request-1"]);
  });
});

test("a header that the message takes tells requests apart", async () => {
  const file = `syntax = "proto3";
    package tale.v1;
    import "google/api/annotations.proto";
    import "transcoder/v1/annotations.proto";
    message Ask { string tongue = 1 [(transcoder.v1.field).header = "Accept-Language"]; }
    message Tale { string text = 1; }
    service Tales {
      rpc Tell(Ask) returns (Tale) {
        option idempotency_level = NO_SIDE_EFFECTS;
        option (google.api.http) = {get: "/tale"};
      }
    }`;
  const service = serviceOf(compileProtos({ "tale.proto": file }), "tale.v1.Tales");
  const tell = ({ tongue }: { tongue: string }) => ({ text: tongue });
  const { app } = await serve(service, { tell } as never, { answerDependsOn: () => "" });
  const ask = (language: string) =>
    app.inject({ url: "/tale", headers: { host: "localhost", "accept-language": language } });
  const answers = await Promise.all(["de", "fr", "de"].map(ask));
  expect(answers.map((answer) => answer.json().text)).toEqual(["de", "fr", "de"]);
  await app.close();
});

test("nothing is shared where nobody has said what answers depend on", async () => {
  const service = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
  const users = new AsyncLocalStorage<string>();
  const getBook = (_: unknown, { requestHeader }: { requestHeader: Headers }) => ({ title: requestHeader.get("user") });
  const transport = createRouterTransport((router) => router.service(service, { getBook } as never), {
    transport: {
      interceptors: [
        (next) => (call) => {
          call.header.set("user", users.getStore() ?? "nobody");
          return next(call);
        },
      ],
    },
  });
  const options = { services: [{ desc: service, transport }] };
  const app = fastify(serverOptions(options));
  app.addHook("onRequest", ({ headers }, _, done) => users.run(String(headers.authorization), done));
  await app.register(transcoder, options);
  const names = times(12, () => "").map((_, i) => `user ${i}`);
  const answers = await Promise.all(
    names.map((authorization) => app.inject({ url: "/books/1", headers: { host: "localhost", authorization } })),
  );
  expect(answers.map((answer) => answer.json().title)).toEqual(names);
  await app.close();
});
