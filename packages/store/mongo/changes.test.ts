/** Change streams that are waited for: some end meanwhile, some answer late. */
import { setImmediate as tick } from "node:timers/promises";
import { type Document, MongoError, MongoServerError, Timestamp } from "mongodb";
import { expect, test } from "vitest";
import { silent } from "../fixtures/silent.ts";
import { type CallOptions, Expired, Unavailable } from "../port.ts";
import { mongoChanges } from "./changes.ts";
import type { Database } from "./database.ts";
import type { Turns } from "./shared-query.ts";

type Answer = PromiseWithResolvers<null>;

/** A place at that second. */
const at = (second: number) => `82${second.toString(16).toUpperCase().padStart(8, "0")}00000000`;
const NOW = 100;
const [NEAR, FAR] = [at(NOW - 50), at(NOW - 70)];

interface Stream {
  tryNext(): Promise<null>;
  bufferedCount(): number;
}

const atOnce: Turns = (_, work) => work();

/** Streams that wait for `answers`, one of which follows the latest, and one reads the past of a second that it resolves to. */
function bench({ near = atOnce, far = atOnce, ...stub }: { near?: Turns; far?: Turns } & Partial<Stream> = {}) {
  let asked: Answer[] = [];
  let isOpen = true;
  const opened: Document[] = [];
  const deadlines: unknown[] = [];
  const patience = Promise.withResolvers<void>();
  const call = { isOver: false, inDoubt: false, failure: undefined, remaining: () => 1_000 };
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
    ...stub,
  };
  const watch = (_: unknown, options: Document) => {
    opened.push(options);
    return stream;
  };
  const operationTime = new Timestamp({ t: NOW, i: 1 });
  const seen: unknown[] = [];
  const database = {
    noteTime: ({ operationTime }: { operationTime?: Timestamp }) => void (operationTime && seen.push(operationTime)),
    inSession: (calls: (session: object) => unknown) => calls({ operationTime }),
    db: { command: async () => ({ cursor: { id: 0, firstBatch: [] } }) },
  };
  const told = mongoChanges({
    declaration: { name: "items", indexes: {}, shown: () => ({}) } as never,
    database: database as unknown as Database,
    streams: () => ({ collection: () => ({ watch }) }) as never,
    turns: { near, far },
    timing: {
      ...{ clock: () => 0, random: () => 0, log: silent },
      sleep: (ms) => (ms === 0 ? tick() : patience.promise),
    },
    run(options, work) {
      deadlines.push(options?.deadline);
      return work(call);
    },
    report: () => {},
  });
  /** What both streams are asked for. */
  async function answers(): Promise<readonly Answer[]> {
    while (asked.length < 2) await tick();
    const both = asked;
    asked = [];
    return both;
  }
  const changes = (options: CallOptions = {}, after = NEAR) =>
    told.changes({ ...options, after, signal: new AbortController().signal });
  return { call, told, answers, changes, opened, deadlines, seen, losePatience: patience.resolve };
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

test("who comes first sets no limit to the time of those who come after it", async () => {
  const { answers, changes, deadlines } = bench();
  const opening = changes({ deadline: 1 });
  for (const answer of await answers()) answer.resolve(null);
  await opening;
  // It waits for the start, which is made for all, and asks for its own past.
  expect(deadlines).toEqual([undefined, 1, 1]);
});

test("what is told of a change has been seen by all reads that come later", async () => {
  const { answers, changes, seen } = bench();
  const opening = changes();
  const clusterTime = new Timestamp({ t: NOW + 1, i: 7 });
  // Of no visible change: what stands between two of them has been seen as well.
  for (const answer of await answers()) answer.resolve({ _id: {}, documents: [undefined], clusterTime } as never);
  await opening;
  expect(seen).toContain(clusterTime);
});

test("who has no time left when the place to begin is found, by the clock alone, does not begin", async () => {
  const { call, answers, changes } = bench();
  const opening = changes();
  const both = await answers();
  call.isOver = true;
  for (const answer of both) answer.resolve(null);
  await expect(opening).rejects.toThrow(Unavailable);
});

/** One that begins so far back that the server still looks for what comes next when patience is over. */
async function beginFarBack() {
  const { answers, changes, losePatience, ...rest } = bench();
  const opening = changes();
  const late = await answers();
  losePatience();
  const next = (await opening)[Symbol.asyncIterator]().next();
  return { ...rest, late, next };
}

test("who begins far back is let in while the server looks for what comes next", async () => {
  const { told, late, next } = await beginFarBack();
  for (const answer of late) answer.resolve(null);
  told.end();
  expect(await next).toEqual({ done: true, value: undefined });
});

test("who begins where the server, after a long look, can't go on is told so when it reads", async () => {
  const { late, next } = await beginFarBack();
  late.at(-1)?.reject(new MongoServerError({ message: "lost", code: 286 }));
  await expect(next).rejects.toThrow(Expired);
});

test("the server is told to give up what is given up here", async () => {
  const { opened } = await beginFarBack();
  expect(opened).toHaveLength(2);
  for (const options of opened) expect(options).toMatchObject({ maxTimeMS: 6_000 });
});

/** Who waits for a turn, by kind, while none is given. */
function queues(...kinds: ("near" | "far")[]) {
  const waiting: string[] = [];
  const never = (kind: string) => () => {
    waiting.push(kind);
    return new Promise<never>(() => {});
  };
  return { waiting, turns: Object.fromEntries(kinds.map((kind) => [kind, never(kind)])) };
}

test.each([
  ["near", NEAR],
  ["far", FAR],
])(
  "who reads the past takes a turn of its kind, %s, and what follows the latest changes waits for none",
  async (kind, after) => {
    const { waiting, turns } = queues("near", "far");
    const { told, changes, opened } = bench(turns);
    changes({}, after).catch(() => {});
    while (waiting.length < 1 || opened.length < 1) await tick();
    await tick();
    expect(waiting).toEqual([kind]);
    expect(opened.map(({ maxAwaitTimeMS }) => maxAwaitTimeMS)).toEqual([1_000]);
    told.end();
  },
);

test("who comes back soon does not wait for those who read far back", async () => {
  const { waiting, turns } = queues("far");
  const { told, answers, changes, opened } = bench(turns);
  changes({}, FAR).catch(() => {});
  while (waiting.length < 1) await tick();
  const back = changes();
  for (const answer of await answers()) answer.resolve(null);
  await back;
  expect(opened).toHaveLength(2);
  told.end();
});

test.each([0, 1])(
  "who waits leaves others their turn, however soon the driver answers, and with %i held",
  async (held) => {
    let inOneTurn = 0;
    const tryNext = async () => {
      if (++inOneTurn > 1_000) throw new Error("no turn of the event loop in a thousand answers");
      return null;
    };
    const { told, changes } = bench({ tryNext, bufferedCount: () => held });
    const next = (await changes())[Symbol.asyncIterator]().next();
    for (let turns = 0; turns < 100; turns++) {
      inOneTurn = 0;
      await tick();
    }
    told.end();
    expect(await next).toEqual({ done: true, value: undefined });
  },
);

test.each([
  ["the oplog has lost what follows", 286, Expired],
  ["this user may not read changes", 13, Unavailable],
])("who waits is told when %s, and does not wait for ever", async (message, code, kind) => {
  const { told } = bench({ tryNext: () => Promise.reject(new MongoServerError({ message, code })) });
  const changes = await told.changes({ signal: new AbortController().signal });
  await expect(changes[Symbol.asyncIterator]().next()).rejects.toThrow(kind);
});

test("a failure that is none of time leaves the time for the next attempt as it was", async () => {
  const { told, answers, changes, opened } = bench();
  changes().catch(() => {});
  for (const answer of await answers()) answer.reject(new MongoError("lost"));
  while (opened.length < 8) await tick();
  told.end();
  expect(new Set(opened.map(({ maxTimeMS }) => maxTimeMS))).toEqual(new Set([6_000]));
});
