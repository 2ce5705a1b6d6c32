/** Change streams that end while they are waited for. */
import { setImmediate as tick } from "node:timers/promises";
import { MongoError, Timestamp } from "mongodb";
import { expect, test } from "vitest";
import { type CallOptions, Unavailable } from "../port.ts";
import { mongoChanges } from "./changes.ts";
import type { Database } from "./database.ts";

type Answer = PromiseWithResolvers<null>;

/** A place at that second. */
const at = (second: number) => `82${second.toString(16).toUpperCase().padStart(8, "0")}00000000`;
const NOW = 100;

/** Streams that wait for `answers`, one of which follows the latest, and one reads the past of a second that it resolves to. */
function bench() {
  let asked: Answer[] = [];
  let isOpen = true;
  const call = { isOver: false, inDoubt: false, failure: undefined };
  const stream = {
    tryNext() {
      if (!isOpen) return Promise.reject(new MongoError("closed"));
      const answer: Answer = Promise.withResolvers();
      asked.push(answer);
      return answer.promise;
    },
    bufferedCount: () => 0,
    async close() {
      isOpen = false;
    },
  };
  const operationTime = new Timestamp({ t: NOW, i: 1 });
  const database = {
    inSession: (calls: (session: object) => unknown) => calls({ operationTime }),
    db: { command: async () => ({ cursor: { id: 0, firstBatch: [] } }) },
  };
  const told = mongoChanges({
    declaration: { name: "items", indexes: {}, shown: () => ({}) } as never,
    database: database as unknown as Database,
    streams: () => ({ collection: () => ({ watch: () => stream }) }) as never,
    timing: { clock: () => 0, random: () => 0, sleep: () => tick() as Promise<void> },
    run: (_: CallOptions | undefined, work) => work(call),
    report: () => {},
  });
  /** What both streams are asked for. */
  async function answers(): Promise<readonly Answer[]> {
    while (asked.length < 2) await tick();
    const both = asked;
    asked = [];
    return both;
  }
  const changes = () => told.changes({ after: at(NOW - 50), signal: new AbortController().signal });
  return { call, told, answers, changes };
}

test.each([
  ["an answer that was under way", (answer: Answer) => answer.resolve(null)],
  ["an error", (answer: Answer) => answer.reject(new MongoError("closed"))],
])("who reads the past when the store is closed is told that it is over, and nothing of %s", async (_, end) => {
  const { told, answers, changes } = bench();
  const opening = changes();
  for (const answer of await answers()) answer.resolve(null);
  const next = (await opening)[Symbol.asyncIterator]().next();
  const last = await answers();
  told.end();
  for (const answer of last) end(answer);
  expect(await next).toEqual({ done: true, value: undefined });
});

test("who has no time left when the place to begin is found, by the clock alone, does not begin", async () => {
  const { call, answers, changes } = bench();
  const opening = changes();
  const both = await answers();
  call.isOver = true;
  for (const answer of both) answer.resolve(null);
  await expect(opening).rejects.toThrow(Unavailable);
});
