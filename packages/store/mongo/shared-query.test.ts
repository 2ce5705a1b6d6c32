import { setImmediate as tick } from "node:timers/promises";
import { MongoError } from "mongodb";
import { afterEach, expect, test, vi } from "vitest";
import { createTurns, shareQueries } from "./shared-query.ts";

afterEach(() => void vi.useRealTimers());

const waits = { isOver: false, remaining: () => 1_000 };

/** Queries that are held until they are answered with their number. */
function held() {
  const queries: { asked: string; answer: () => void }[] = [];
  const share = shareQueries(async (asked: string) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const number = queries.push({ asked, answer: resolve });
    await promise;
    return { number };
  });
  return { queries, share: (asked: string, call = waits) => share(asked, call) };
}

test("those who ask for the same in one tick share a query, and how it fails; the next one is sent anew", async () => {
  let sent = 0;
  const share = shareQueries(async (_: string) => {
    const number = ++sent;
    await tick();
    if (number === 1) throw new Error("it is gone");
    return { number };
  });
  const ask = () => Promise.allSettled([share("a", waits), share("a", waits), share("a", waits)]);
  expect((await ask()).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const [first, ...others] = await ask();
  expect(first).toEqual({ status: "fulfilled", value: { number: 2 } });
  expect(others).toEqual([first, first]);
});

test("nobody joins a query that was sent", async () => {
  const { queries, share } = held();
  const first = share("a");
  while (queries.length === 0) await tick();
  const later = [share("a"), share("a")];
  queries[0]?.answer();
  expect((await first).number).toBe(1);
  while (queries.length === 1) await tick();
  queries[1]?.answer();
  expect((await Promise.all(later)).map(({ number }) => number)).toEqual([2, 2]);
});

test("those who ask for something else do not wait", async () => {
  const { queries, share } = held();
  for (const asked of ["a", "b", "a", "c"]) void share(asked);
  await tick();
  expect(queries.map(({ asked }) => asked)).toEqual(["a", "b", "c"]);
});

test("a query that may be lost is not waited for", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  const { queries, share } = held();
  void share("a");
  await tick();
  const later = share("a");
  await vi.advanceTimersByTimeAsync(600);
  while (queries.length === 1) await tick();
  queries[1]?.answer();
  expect((await later).number).toBe(2);
});

test("what nobody waits for any more when its turn comes is not sent", async () => {
  const { queries, share } = held();
  const first = share("a");
  await tick();
  const gone = { ...waits };
  const left = [share("a", gone), share("a", gone)].map((asked) => expect(asked).rejects.toBeInstanceOf(MongoError));
  gone.isOver = true;
  queries[0]?.answer();
  await first;
  await Promise.all(left);
  expect(queries).toHaveLength(1);
  void share("a");
  while (queries.length === 1) await tick();
});

const never = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Works that end when they are told to, and which of them have begun. */
function works(inTurn: ReturnType<typeof createTurns>) {
  const begun: string[] = [];
  const begin = (name: string, signal = never) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const ended = inTurn(signal, () => {
      begun.push(name);
      return promise;
    });
    ended.catch(() => {});
    return { ended, end: () => resolve(name), fail: () => reject(new Error(name)) };
  };
  return { begun, begin };
}

test("so many are under way at a time, and the others follow in their order, also after one that fails", async () => {
  const { begun, begin } = works(createTurns(2));
  const [first, second, third] = ["1", "2", "3", "4"].map((name) => begin(name));
  await settled();
  expect(begun).toEqual(["1", "2"]);
  second?.fail();
  await expect(second?.ended).rejects.toThrow("2");
  expect(begun).toEqual(["1", "2", "3"]);
  third?.end();
  await expect(third?.ended).resolves.toBe("3");
  expect(begun).toEqual(["1", "2", "3", "4"]);
  first?.end();
  await expect(first?.ended).resolves.toBe("1");
});

test("who leaves before the turn is never begun, and who leaves after it keeps the turn until its work has ended", async () => {
  const { begun, begin } = works(createTurns(1));
  const leaving = new AbortController();
  const first = begin("first", leaving.signal);
  const second = begin("second", leaving.signal);
  begin("third");
  leaving.abort(new Error("nobody waits"));
  await expect(second.ended).rejects.toThrow("nobody waits");
  await settled();
  expect(begun).toEqual(["first"]);
  first.end();
  await first.ended;
  await settled();
  expect(begun).toEqual(["first", "third"]);
});
