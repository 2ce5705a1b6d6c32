/** Answers that are lost, writes that come late, corrupt documents: what the engine makes of them. */
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { deserialize, serialize } from "bson";
import type { Document } from "mongodb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../../../test/harness/mongod.ts";
import { range } from "../conformance/subject.ts";
import { openForTest, withDatabase } from "../fixtures/mongo.ts";
import { type CallOptions, type Collection, Corrupt, type Doc, put, type Store, schema, Unavailable } from "../port.ts";

interface Counter extends Doc {
  readonly count: number;
  readonly even?: boolean;
}
const COUNTERS = schema<Counter>()("counters", { even: ["even"] });
type Counters = Collection<Counter, typeof COUNTERS.indexes>;

/** Writes that are made and then reported as failed, in a way that the driver does not repeat by itself. */
const MADE = { writeConcernError: { code: 64, errmsg: "waiting for replication timed out" } };
/** Writes that are refused before they are made. */
const REFUSED = { errorCode: 50 };

describe.skipIf(mongodMissing)("the MongoDB engine", () => {
  let set: ReplicaSet;
  let service: string;
  let store: Store;
  let counters: Counters;
  let tests = 0;
  beforeAll(async () => {
    set = await startReplicaSet({ arguments: ["--setParameter", "enableTestCommands=1"] });
  });
  beforeEach(async () => {
    service = `faults${tests++}`;
    store = await openForTest(set.uri, service);
    counters = await store.collection(COUNTERS);
  });
  afterEach(async () => {
    await fail("off");
    await store?.close();
  });
  afterAll(() => set?.stop());

  const inDatabase = <R>(look: Parameters<typeof withDatabase<R>>[2]) =>
    withDatabase(set.uri, `petstore_${service}`, look);
  const fail = (mode: object | string, data: Document = {}) =>
    withDatabase(set.uri, "admin", (db) =>
      db.command({ configureFailPoint: "failCommand", mode, data: { appName: "petstore", ...data } }),
    );
  const add = (id: number, at: Counters = counters) =>
    at.update(id, (doc, rev) => put({ _id: id, count: (doc?.count ?? 0) + 1 }, rev));

  /** What the driver would not send: a text that is no UTF-8. */
  async function insertInvalidText(doc: Document): Promise<void> {
    const command = { insert: "counters", documents: [doc], $db: `petstore_${service}` };
    const body = Buffer.from(serialize(command));
    body.writeUInt8(0xff, body.indexOf(doc.text));
    const header = Buffer.alloc(21);
    header.writeInt32LE(header.length + body.length, 0);
    header.writeInt32LE(2013, 12); // OP_MSG
    const socket = connect((await set.primary()).port, "127.0.0.1");
    socket.write(Buffer.concat([header, body]));
    const [reply] = await once(socket, "data");
    socket.destroy();
    expect(deserialize(reply.subarray(header.length))).toMatchObject({ ok: 1, n: 1 });
  }

  test.each([
    ["made", MADE],
    ["refused", REFUSED],
  ])("increments that were %s and reported as failed all count once", { timeout: 120_000 }, async (_, data) => {
    const other = await openForTest(set.uri, service);
    const others = await other.collection(COUNTERS);
    await fail({ activationProbability: 0.4 }, { failCommands: ["insert", "update"], ...data });
    const revs: number[] = [];
    const run = async (at: Counters) => {
      for (let i = 0; i < 25; i++) revs.push(...(await Promise.all(range(4).map(() => add(1, at)))));
    };
    await Promise.all([run(counters), run(others)]);
    await fail("off");
    expect(await counters.get(1)).toEqual({ _id: 1, rev: 200, count: 200 });
    expect(revs.toSorted((a, b) => a - b)).toEqual(range(200, 1));
    await other.close();
  });

  test.each([
    ["made and reported as failed", MADE],
    ["refused", REFUSED],
    ["cut off", { closeConnection: true }],
  ])("changes that travel together and were %s all count once", { timeout: 120_000 }, async (_, data) => {
    const other = await openForTest(set.uri, service);
    const others = await other.collection(COUNTERS);
    await fail({ activationProbability: 0.4 }, { failCommands: ["insert", "update"], ...data });
    const revs = new Map(range(20).map((id) => [id, [] as number[]]));
    // Both change all of them, so that of most commands only a part finds what was read.
    const run = async (at: Counters) => {
      for (let i = 0; i < 10; i++) {
        await Promise.all([...revs].map(async ([id, of]) => void of.push(await add(id, at))));
      }
    };
    await Promise.all([run(counters), run(others)]);
    await fail("off");
    for (const [id, of] of revs) {
      expect(await counters.get(id)).toEqual({ _id: id, rev: 20, count: 20 });
      expect(of.toSorted((a, b) => a - b)).toEqual(range(20, 1));
    }
    await other.close();
  });

  test("a document that is refused harms none of those that travel with it", async () => {
    const ids = range(40);
    await Promise.all(ids.map((id) => add(id)));
    // What MongoDB itself would not let in, whatever the reason.
    await inDatabase((db) =>
      db.command({ collMod: "counters", validator: { _id: { $nin: [7, 47] }, count: { $lt: 3 } } }),
    );
    const isRefused = (id: number) => id === 7 || id === 47;
    const outcome = (id: number) =>
      counters
        .update(id, (doc, rev) => put({ _id: id, count: (doc?.count ?? 0) + 1 }, rev), {
          deadline: isRefused(id) ? deadline(1000) : undefined,
        })
        .catch((error: Error) => error.name);
    const outcomes = (ids: number[]) => Promise.all(ids.map(outcome));
    const replaced = await outcomes(ids);
    expect(replaced).toEqual(ids.map((id) => (isRefused(id) ? "Unavailable" : 2)));
    const fresh = range(20, 40);
    expect(await outcomes(fresh)).toEqual(fresh.map((id) => (isRefused(id) ? "Unavailable" : 1)));
  });

  test("inserts of two processes that travel together: one wins each, and both count", async () => {
    const other = await openForTest(set.uri, service);
    const others = await other.collection(COUNTERS);
    const ids = range(60);
    const revs = await Promise.all([counters, others].flatMap((at) => ids.map((id) => add(id, at))));
    expect(revs.toSorted()).toEqual([...ids.map(() => 1), ...ids.map(() => 2)]);
    expect(await counters.getMany(ids)).toEqual(ids.map((_id) => ({ _id, rev: 2, count: 2 })));
    await other.close();
  });

  test("a write whose outcome can't be found out before the deadline is in doubt; one that was not sent is not", async () => {
    await add(1);
    const closing = { failCommands: ["update", "find"], closeConnection: true };
    await fail("alwaysOn", closing);
    const impatient = (id: number, ms: number) =>
      counters
        .update(id, (doc) => put({ _id: id, count: (doc?.count ?? 0) + 1 }, 0), { deadline: deadline(ms) })
        .catch((reason: unknown) => reason);
    // Nothing is known of this one, so it has to be read first.
    const unsent = await impatient(0, 500);
    expect(unsent).toBeInstanceOf(Unavailable);
    expect(unsent).toMatchObject({ inDoubt: false });

    // What the driver still repeats of it comes through, and takes nobody's place below.
    await fail("off");
    await add(1);

    // This one is known: its write is sent at once, or as soon as a busy machine comes to it.
    await fail("alwaysOn", closing);
    const doubtful = await impatient(1, 5_000);
    expect(doubtful).toBeInstanceOf(Unavailable);
    expect(doubtful).toMatchObject({ inDoubt: true });
  });

  test("inserts that come late do not bring back what was removed meanwhile", { timeout: 120_000 }, async () => {
    // Longer than the driver waits: it repeats the inserts once, then the engine does.
    await fail({ times: 2 }, { failCommands: ["insert"], blockConnection: true, blockTimeMS: 12_000 });
    await Promise.all([add(1), add(2), add(3)]);
    await Promise.all([1, 2, 3].map((id) => counters.remove(id, () => true)));
    // The server works off both late ones before it can be told so.
    await fail("off");
    await new Promise((resolve) => setTimeout(resolve, 15_000));
    expect(await counters.list({ limit: 9, order: "asc" })).toEqual([]);
  });

  test("a removal that was made and reported as failed is settled", async () => {
    await add(1);
    await fail({ times: 1 }, { failCommands: ["delete"], ...MADE });
    await counters.remove(1, () => true);
    expect(await add(1)).toBe(1);
  });

  test("numbers whose answer is lost are gaps, and never come twice", async () => {
    await fail({ activationProbability: 0.4 }, { failCommands: ["findAndModify"], ...MADE });
    const ids: number[] = [];
    for (let i = 0; i < 25; i++) ids.push(...(await Promise.all(range(4).map(() => store.nextId("ids")))));
    expect(new Set(ids).size).toBe(100);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(ids.at(-1)).toBeGreaterThan(100);
  });

  test("a corrupt document harms only itself", async () => {
    await Promise.all(range(6, 1).map((id) => counters.update(id, () => put({ _id: id, count: 1, even: true }, 0))));
    await inDatabase(async (db) => {
      const raw = db.collection<{ _id: number; rev?: unknown; even: boolean }>("counters");
      await raw.replaceOne({ _id: 2 }, { even: true });
      await raw.replaceOne({ _id: 3 }, { even: true, rev: "one" });
      await raw.deleteOne({ _id: 4 });
      // Of no type that an `_id` has, so that nothing that is listed lies beyond it.
      await db.collection("counters").insertMany([{ even: true }, { even: true }]);
    });
    await insertInvalidText({ _id: 4, rev: 1, count: 1, even: true, _operations: [], text: "xyz" });
    const ids = range(6, 1);
    const seen = await Promise.allSettled(ids.map((id) => counters.get(id)));
    expect(seen.map((one) => one.status === "fulfilled" || one.reason instanceof Corrupt)).toEqual(ids.map(() => true));
    expect(seen.flatMap((one) => (one.status === "fulfilled" ? one.value?._id : []))).toEqual([1, 5, 6]);
    for (const id of [2, 3, 4]) {
      await expect(add(id)).rejects.toThrow(Corrupt);
      await expect(counters.remove(id, () => true)).rejects.toThrow(Corrupt);
    }
    const page = await counters.list({ where: { even: true }, limit: 2, order: "asc" });
    expect(page.map((doc) => doc._id)).toEqual([1, 5]);
    const last = await counters.list({ where: { even: true }, limit: 1, order: "desc" });
    expect(last.map((doc) => doc._id)).toEqual([6]);
    const all = { limit: 99, order: "desc" } as const;
    const together = [all, { ...all, after: 6 }, { ...all, where: { even: true } }].map((query) =>
      counters.list(query),
    );
    const seenIn = (await Promise.all(together)).map((docs) => docs.map((doc) => doc._id));
    expect(seenIn).toEqual([
      [6, 5, 1],
      [5, 1],
      [6, 5, 1],
    ]);
  });

  describe("a read that the server does not come to an end with", () => {
    const reads = {
      "by id": (options: CallOptions) => counters.get(1, options),
      "of the latest state": (options: CallOptions) => counters.get(1, { ...options, latest: true }),
      "of a list": (options: CallOptions) => counters.list({ limit: 5, order: "asc" }, options),
    };
    const hold = (mode: string) =>
      withDatabase(set.uri, "admin", (db) => {
        const data = { nss: `petstore_${service}.counters`, shouldCheckForInterrupt: true };
        return db.command({ configureFailPoint: "waitInFindBeforeMakingBatch", mode, data });
      });
    beforeEach(() => hold("alwaysOn"));
    afterEach(() => hold("off"));

    /** The time limits of the reads that run at the server, in milliseconds. */
    const limits = () =>
      withDatabase(set.uri, "admin", async (db) => {
        const { inprog } = await db.command({ currentOp: true, ns: `petstore_${service}.counters`, op: "query" });
        return inprog.map(({ command }: Document) => Number(command.maxTimeMS)) as number[];
      });
    const running = async () => (await limits()).length;
    const isOver = () => expect.poll(running, { timeout: 15_000 }).toBe(0);

    test.each(Object.entries(reads))("ends with the time of its caller: %s", { timeout: 60_000 }, async (_, read) => {
      const answer = expect(read({ deadline: deadline(5_000) })).rejects.toThrow(Unavailable);
      await expect.poll(running, { timeout: 4_000 }).toBe(1);
      expect((await limits())[0]).toBeLessThanOrEqual(5_000);
      await answer;
      await isOver();
    });

    test.each(Object.entries(reads))("ends when all callers have left: %s", { timeout: 60_000 }, async (_, read) => {
      const callers = [new AbortController(), new AbortController()];
      const outcomes = Promise.allSettled(callers.map(({ signal }) => read({ deadline: deadline(60_000), signal })));
      await expect.poll(running, { timeout: 15_000 }).toBeGreaterThan(0);
      callers[0]?.abort();
      await sleep(1_500);
      expect(await running()).toBeGreaterThan(0);
      callers[1]?.abort();
      await isOver();
      expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    });
  });

  test("callers that leave cost no connections", { timeout: 60_000 }, async () => {
    await Promise.all(range(200).map((id) => add(id)));
    const created = () =>
      withDatabase(set.uri, "admin", async (db) => (await db.command({ serverStatus: 1 })).connections.totalCreated);
    const before = await created();
    for (const id of range(200)) {
      const caller = new AbortController();
      const { signal } = caller;
      const reads = [counters.get(id, { signal }), counters.list({ after: id, limit: 5, order: "asc" }, { signal })];
      await sleep(id % 3);
      caller.abort();
      await Promise.allSettled(reads);
    }
    // The client that looks has a few of its own.
    expect((await created()) - before).toBeLessThan(20);
  });

  describe("what is asked for in one tick travels together", () => {
    const sent = async (command: string): Promise<number> => {
      const { metrics } = await withDatabase(set.uri, "admin", (db) => db.command({ serverStatus: 1 }));
      return Number(metrics.commands[command].total);
    };
    const counting = async (command: string, work: () => Promise<unknown>): Promise<number> => {
      const before = await sent(command);
      await work();
      return (await sent(command)) - before;
    };
    /** The server reads and counts for itself now and then. */
    const few = 10;

    test("reads", async () => {
      const reads = () => Promise.all(range(200).map((id) => counters.get(id)));
      expect(await counting("find", reads)).toBeLessThan(few);
    });
    test("the same list", async () => {
      await add(1);
      const lists = () =>
        Promise.all(range(200).map(() => counters.list({ where: { even: true }, limit: 5, order: "asc" })));
      expect(await counting("find", lists)).toBeLessThan(few);
    });
    test("updates of one document", async () => {
      expect(await counting("update", () => Promise.all(range(200).map(() => add(1))))).toBeLessThan(few);
    });
    test("inserts, and updates of many documents", async () => {
      const all = () => Promise.all(range(200).map((id) => add(id)));
      expect(await counting("insert", all)).toBeLessThan(few);
      expect(await counting("update", all)).toBeLessThan(few);
    });
    test("numbers of a sequence", async () => {
      const numbers = () => Promise.all(range(200).map(() => store.nextId("ids")));
      expect(await counting("findAndModify", numbers)).toBeLessThan(few);
    });
  });

  test("a list reads the documents of its page and no others", async () => {
    const save = (id: number) => counters.update(id, () => put({ _id: id, count: 1, even: id % 2 === 0 }, 0));
    await Promise.all(range(100).map(save));
    const profile = await inDatabase(async (db) => {
      await db.command({ profile: 2 });
      await counters.list({ where: { even: true }, after: 20, limit: 5, order: "asc" });
      await counters.list({ where: { even: [true, false] }, after: 20, limit: 5, order: "desc" });
      await counters.list({ after: 20, limit: 5, order: "asc" });
      await db.command({ profile: 0 });
      return db
        .collection("system.profile")
        .find({ ns: `petstore_${service}.counters`, op: "query" })
        .toArray();
    });
    expect(profile).toHaveLength(3);
    for (const { planSummary, docsExamined, keysExamined, command } of profile) {
      // Named, for the planner goes by what it has seen of other values.
      expect(command).toHaveProperty("hint");
      expect(planSummary).toMatch(/^IXSCAN/);
      expect(docsExamined).toBe(5);
      expect(keysExamined).toBeLessThan(12);
    }
  });
});

/** So many milliseconds from now on the clock of `openForTest`. */
const deadline = (ms: number) => Math.floor(performance.timeOrigin + performance.now()) + ms;
