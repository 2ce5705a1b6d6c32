/** Which writes travel together, in which session, and what is known of each afterwards. */

import { setImmediate as tick } from "node:timers/promises";
import { type ClientSession, MongoBulkWriteError, MongoNetworkError } from "mongodb";
import { afterEach, expect, test, vi } from "vitest";
import type { Database, Raw } from "./database.ts";
import type { Stored } from "./operation-log.ts";
import { createWriters, type Writer } from "./writes.ts";

afterEach(() => void vi.useRealTimers());

interface Operation {
  readonly insertOne?: { readonly document: { readonly _id: number } };
  readonly replaceOne?: { readonly filter: object; readonly replacement: { readonly _id: number } };
}
type Answer = (operations: readonly Operation[]) => { matchedCount: number } | Promise<{ matchedCount: number }>;

const base = (_id: number): Stored => ({ doc: { _id, rev: 3 }, operations: [{ by: "another", number: 7, rev: 3 }] });
const doc = (_id: number) => ({ _id, rev: 4 });
const all: Answer = (operations) => ({ matchedCount: operations.filter(({ replaceOne }) => replaceOne).length });

/** A server that answers like `answers`, one after the other, and then does all that it is told. */
function bench(...answers: Answer[]) {
  const log: string[] = [];
  let sessions = 0;
  const raw = {
    async bulkWrite(operations: readonly Operation[], { session, ordered }: { session: object; ordered: boolean }) {
      expect(ordered).toBe(false);
      const ids = operations.map(({ insertOne, replaceOne }) =>
        insertOne ? `+${insertOne.document._id}` : `${replaceOne?.replacement._id}`,
      );
      log.push(`${session}: ${ids.join(" ")}`);
      return await (answers.shift() ?? all)(operations);
    },
  };
  const database = {
    openSession() {
      const name = `s${++sessions}`;
      return { toString: () => name, endSession: async () => void log.push(`${name} ends`) };
    },
    noteTime: (session: ClientSession) => void log.push(`${session} noted`),
  };
  return { log, openWriter: createWriters(database as unknown as Database, raw as unknown as Raw) };
}

/** Writes at once, ends when it is answered, and says what was known. */
async function writeOnce(openWriter: () => Writer, id: number, kind: "insert" | "replace" = "replace") {
  const writer = openWriter();
  try {
    return await writer.write(kind === "replace" ? base(id) : undefined, doc(id));
  } catch (error) {
    return (error as Error).message;
  } finally {
    writer.end();
  }
}
const three = (openWriter: () => Writer) => Promise.all([1, 2, 3].map((id) => writeOnce(openWriter, id)));

/** As the driver reports documents that were refused. */
const refused =
  (matchedCount: number, ...errors: { index: number; code: number; errmsg: string }[]): Answer =>
  () => {
    const result = { matchedCount, getWriteConcernError: () => undefined };
    const { code, errmsg: message } = errors[0] ?? expect.unreachable("refuses nothing");
    throw new MongoBulkWriteError({ message, code, writeErrors: errors as never }, result as never);
  };
const duplicate = (index: number) => ({ index, code: 11000, errmsg: "duplicate" });
const invalid = (index: number) => ({ index, code: 121, errmsg: "invalid" });

test("the writes of one tick are one command for replacements and one for inserts, noted before they are answered", async () => {
  const { log, openWriter } = bench();
  const kinds = ["replace", "insert", "replace", "insert"] as const;
  expect(await Promise.all(kinds.map((kind, id) => writeOnce(openWriter, id, kind)))).toEqual(kinds.map(() => "made"));
  expect(log).toEqual(["s1: 0 2", "s1 noted", "s1 ends", "s2: +1 +3", "s2 noted", "s2 ends"]);
});

test("those that come while a command is under way are the next one", async () => {
  const { promise, resolve } = Promise.withResolvers<{ matchedCount: number }>();
  const { log, openWriter } = bench(() => promise);
  const first = writeOnce(openWriter, 1);
  await tick();
  const second = writeOnce(openWriter, 2);
  await tick();
  const third = writeOnce(openWriter, 3);
  // Inserts are another command.
  expect(await writeOnce(openWriter, 4, "insert")).toBe("made");
  resolve({ matchedCount: 1 });
  expect(await Promise.all([first, second, third])).toEqual(["made", "made", "made"]);
  expect(log.filter((line) => line.includes(":"))).toEqual(["s1: 1", "s2: +4", "s3: 2 3"]);
});

test("a command that may be lost is not waited for", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { openWriter } = bench(() => new Promise(() => {}));
  void writeOnce(openWriter, 1);
  await tick();
  const later = writeOnce(openWriter, 2);
  await vi.advanceTimersByTimeAsync(600);
  expect(await later).toBe("made");
});

test("more than 256 travel in several commands", async () => {
  const { log, openWriter } = bench();
  await Promise.all(Array.from({ length: 600 }, (_, id) => writeOnce(openWriter, id)));
  const sizes = log.filter((line) => line.includes(":")).map((line) => line.split(" ").length - 1);
  expect(sizes).toEqual([256, 256, 88]);
});

test("a write touches exactly what was read", async () => {
  const { openWriter } = bench((operations) => {
    expect(operations.map(({ replaceOne }) => replaceOne?.filter)).toEqual([
      { _id: 1, rev: 3, "_operations.0": { by: "another", number: 7, rev: 3 } },
    ]);
    return all(operations);
  });
  expect(await writeOnce(openWriter, 1)).toBe("made");
});

test.each([
  [3, "made"],
  [2, "unsure"],
  [1, "unsure"],
  [0, "not made"],
])("of three replacements that found %i documents each is %s", async (matchedCount, known) => {
  const { openWriter } = bench(() => ({ matchedCount }));
  expect(await three(openWriter)).toEqual([known, known, known]);
});

test("a document that is refused is so by itself, and does not count among the others", async () => {
  expect(await three(bench(refused(2, invalid(1))).openWriter)).toEqual(["made", "invalid", "made"]);
  expect(await three(bench(refused(1, invalid(1))).openWriter)).toEqual(["unsure", "invalid", "unsure"]);
});

test("an insert that comes second was not made; the others were", async () => {
  const { openWriter } = bench(refused(0, duplicate(2), invalid(0)));
  const inserts = [1, 2, 3].map((id) => writeOnce(openWriter, id, "insert"));
  expect(await Promise.all(inserts)).toEqual(["invalid", "made", "not made"]);
});

test.each<[string, Answer]>([
  ["cut", () => Promise.reject(new MongoNetworkError("cut"))],
  [
    "not by a majority",
    () => {
      const result = { matchedCount: 2, getWriteConcernError: () => ({ code: 64 }) };
      throw new MongoBulkWriteError({ message: "not by a majority", code: 64 }, result as never);
    },
  ],
  [
    "duplicate",
    () => {
      const result = { matchedCount: 2, getWriteConcernError: () => ({ code: 64 }) };
      throw new MongoBulkWriteError(
        { message: "duplicate", code: 11000, writeErrors: [duplicate(0)] as never },
        result as never,
      );
    },
  ],
])("of a command that failed nothing is known (%s)", async (why, answer) => {
  expect(await three(bench(answer).openWriter)).toEqual([why, why, why]);
});

test("further attempts go through the session of the first, one after the other, and it ends with the last", async () => {
  const { promise: slow, resolve } = Promise.withResolvers<{ matchedCount: number }>();
  const { log, openWriter } = bench(
    () => ({ matchedCount: 0 }),
    all,
    () => slow,
  );
  const [one, two, inserted] = [openWriter(), openWriter(), openWriter()];
  await Promise.all([one.write(base(1), doc(1)), two.write(base(2), doc(2)), inserted.write(undefined, doc(3))]);
  log.length = 0;
  const again = one.write(base(1), doc(1));
  await tick();
  const waiting = two.write(base(2), doc(2));
  // Its insert was first, and went through another session.
  expect(await inserted.write(base(3), doc(3))).toBe("made");
  inserted.end();
  expect(log).toEqual(["s1: 1", "s2: 3", "s2 noted", "s2 ends"]);
  resolve({ matchedCount: 1 });
  expect(await again).toBe("made");
  one.end();
  expect(await waiting).toBe("made");
  two.end();
  expect(log.slice(4)).toEqual(["s1 noted", "s1: 2", "s1 noted", "s1 ends"]);
});
