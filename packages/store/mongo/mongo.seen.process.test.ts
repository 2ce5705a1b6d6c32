/**
 * Two processes, of which one still reads from a primary that is none any more. What the other has told, that one does not
 * take back: its answers are as new, or it has none.
 */
import { realTime } from "@petstore/runtime/clock";
import { type CommandStartedEvent, MongoClient, type Timestamp } from "mongodb";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ask, mongodMissing, type ReplicaSet, startReplicaSet } from "../../../test/harness/mongod.ts";
import { openForTest } from "../fixtures/mongo.ts";
import { type CallOptions, type Collection, type Doc, put, schema, Unavailable } from "../port.ts";
import { readSeen } from "./database.ts";

interface Counter extends Doc {
  readonly _id: number;
  readonly count: number;
  readonly listed: true;
}
const COUNTERS = schema<Counter>()("counters", { listed: ["listed"] });
type Counters = Collection<Counter, typeof COUNTERS.indexes>;

const reads = {
  "one by id": async (counters: Counters, options?: CallOptions) => (await counters.get(1, options))?.count,
  "several by id": async (counters: Counters, options?: CallOptions) =>
    (await counters.getMany([1], options))[0]?.count,
  "a list": async (counters: Counters, options?: CallOptions) =>
    (await counters.list({ where: { listed: true }, limit: 9, order: "asc" }, options))[0]?.count,
};

describe.skipIf(mongodMissing)("on three members", () => {
  const stack = new AsyncDisposableStack();
  let set: ReplicaSet;
  beforeAll(async () => {
    set = stack.use(await startReplicaSet({ members: 3, arguments: ["--setParameter", "enableTestCommands=1"] }));
  }, 120_000);
  afterAll(() => stack.disposeAsync(), 60_000);

  async function open(uri = set.uri): Promise<Counters> {
    const store = await openForTest(uri, "seen");
    stack.defer(() => store.close());
    return store.collection(COUNTERS);
  }

  /** Adds one, and resolves to what was seen then. */
  async function add(counters: Counters): Promise<string> {
    const progress = { hasBegun: false, seen: "" };
    await counters.update(1, (doc) => put({ _id: 1, count: (doc?.count ?? 0) + 1, listed: true }, undefined), {
      progress,
    });
    return progress.seen;
  }
  const after = (seen: string, withinMs = 30_000): CallOptions => ({
    deadline: realTime.clock() + withinMs,
    progress: { hasBegun: false, seen },
  });
  const nameIn = (seen: string) => seen.slice(0, seen.indexOf(":"));

  test("what was seen elsewhere is read by its time, and nobody waits for a majority", async () => {
    const seen = await add(await open());
    const commands: CommandStartedEvent[] = [];
    const connect = vi.spyOn(MongoClient.prototype, "connect").mockImplementationOnce(function (this: MongoClient) {
      this.on("commandStarted", (event) => void commands.push(event));
      return this.connect();
    });
    const counters = await open(`${set.uri}&monitorCommands=true`);
    connect.mockRestore();
    for (const read of Object.values(reads)) expect(await read(counters, after(seen))).toBe(1);
    const concerns = commands.flatMap(({ command }) => (command.find === "counters" ? command.readConcern : []));
    const { operationTime } = readSeen(nameIn(seen), seen) ?? expect.unreachable();
    const isAfter = (time: Timestamp) => time.greaterThanOrEqual(operationTime);
    expect(concerns.map(({ level, afterClusterTime }) => [level, isAfter(afterClusterTime)])).toEqual(
      concerns.map(() => ["majority", true]),
    );
    expect(concerns).toHaveLength(3);
  });

  test("a primary that does not know yet that it is none takes nothing back", { timeout: 120_000 }, async () => {
    const writer = await open();
    const before = (await writer.get(1))?.count ?? 0;
    const old = await set.primary();
    const stale = await open(`mongodb://${old.host}/?directConnection=true`);
    const stayPrimary = (mode: string) => ask(old.host, { configureFailPoint: "blockHeartbeatStepdown", mode });
    await stayPrimary("alwaysOn");
    old.signal("SIGSTOP");
    const seen = await add(writer);
    old.signal("SIGCONT");
    try {
      const progress = { hasBegun: false, seen: "" };
      for (const [name, read] of Object.entries(reads)) expect(await read(stale, { progress }), name).toBe(before);
      // For this test it names other servers, so that it finds no other primary.
      const told = seen.replace(nameIn(seen), nameIn(progress.seen));
      for (const [name, read] of Object.entries(reads))
        await expect(read(stale, after(told, 3_000)), name).rejects.toThrow(Unavailable);
    } finally {
      await stayPrimary("off");
    }
    for (const [name, read] of Object.entries(reads)) expect(await read(writer, after(seen)), name).toBe(before + 1);
  });
});
