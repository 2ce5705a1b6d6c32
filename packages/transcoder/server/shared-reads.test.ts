import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, test } from "vitest";
import { compileLibrary, serviceOf } from "../testdata/compile.ts";
import { serve } from "../testdata/server.ts";
import { shareReads, unshared } from "./shared-reads.ts";

describe("callers of one key", () => {
  /** Calls of one turn, which ends when it is told to. */
  function turn() {
    const ends: (() => void)[] = [];
    const calls: { deadline: number; signal: AbortSignal }[] = [];
    const join = shareReads<number>((make) => void ends.push(make));
    const ask = (key: string, deadline = 1000) =>
      join(key, deadline, () => async (until, signal) => calls.push({ deadline: until, signal }));
    const end = () => {
      for (const make of ends.splice(0)) make();
    };
    return { join, ask, end, calls };
  }

  test("in one turn are answered by one call, made at its end", async () => {
    const { ask, end, calls } = turn();
    const shares = [ask("a"), ask("a"), ask("b"), ask("a")];
    expect(calls).toHaveLength(0);
    end();
    expect(await Promise.all(shares.map(({ answer }) => answer))).toEqual([1, 1, 2, 1]);
  });

  test("never join a call that was made: it may have read before they asked", async () => {
    const { ask, end } = turn();
    const first = ask("a");
    end();
    const second = ask("a");
    end();
    expect([await first.answer, await second.answer]).toEqual([1, 2]);
  });

  test("have the time of the one who waits longest", () => {
    const { ask, end, calls } = turn();
    for (const deadline of [2000, 3000, 1000]) ask("a", deadline);
    end();
    expect(calls).toMatchObject([{ deadline: 3000 }]);
  });

  test("lose it only when all have gone", () => {
    const { ask, end, calls } = turn();
    const [first, second] = [ask("a"), ask("a")];
    end();
    first.leave();
    expect(calls[0]?.signal.aborted).toBe(false);
    second.leave();
    expect(calls[0]?.signal.aborted).toBe(true);
  });

  test("fail together, and one whose request is wrong alone", async () => {
    const { join, ask, end } = turn();
    const refuse = () => {
      throw new Error("wrong");
    };
    expect(() => join("a", 1000, refuse)).toThrow("wrong");
    const good = ask("a");
    const failing = [1, 2].map(() => join("b", 1000, () => () => Promise.reject(new Error("down"))));
    end();
    expect(await good.answer).toBe(1);
    for (const { answer } of failing) await expect(answer).rejects.toThrow("down");
  });
});

test("a call of one caller is made at once, and ends when it has gone", async () => {
  let signal: AbortSignal | undefined;
  const { answer, leave } = unshared(1000, async (_, given) => {
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

  /** Sends them together. Answers with the answers, and with the ids of the requests that the service was called for. */
  async function together(requests: readonly { url: string; headers?: Record<string, string> }[], fails = false) {
    const called: (string | null)[] = [];
    const getBook = (_: unknown, { requestHeader }: { requestHeader: Headers }) => {
      called.push(requestHeader.get("x-request-id"));
      if (fails) throw new ConnectError("there is none", Code.NotFound);
      return { title: "Emma" };
    };
    const callHeaders = ({ id, headers }: { id: string; headers: Record<string, unknown> }) => ({
      "x-request-id": id,
      "x-caller": String(headers["x-caller"]),
    });
    server = await serve(service, { getBook } as never, { callHeaders: callHeaders as never });
    const answers = await Promise.all(
      requests.map(({ url, headers }, i) =>
        server.app.inject({ url, headers: { host: "localhost", "x-request-id": `request-${i}`, ...headers } }),
      ),
    );
    return { answers, called };
  }

  test("that are the same are one call; each answer has the id of its own request", async () => {
    const url = "/books/1";
    const { answers, called } = await together([{ url }, { url, headers: { "x-caller": "undefined" } }, { url }]);
    expect(called).toEqual(["request-0"]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(answers.map(({ headers }) => headers["x-request-id"])).toEqual(["request-0", "request-1", "request-2"]);
  });

  test("that fail are one call, too", async () => {
    const { answers, called } = await together([{ url: "/books/1" }, { url: "/books/1" }], true);
    expect(called).toHaveLength(1);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([404, 404]);
  });

  test.each([
    ["another target", { url: "/books/2" }],
    ["another query", { url: "/books/1?x=1" }],
    ["another caller", { url: "/books/1", headers: { "x-caller": "ann" } }],
    ["another time limit", { url: "/books/1", headers: { "x-server-timeout": "20" } }],
    ["another handling of what is unknown", { url: "/books/1", headers: { prefer: "handling=strict" } }],
  ])("with %s are calls of their own", async (_, other) => {
    const { called } = await together([{ url: "/books/1" }, other, { url: "/books/1" }]);
    expect(called.sort()).toEqual(["request-0", "request-1"]);
  });
});
