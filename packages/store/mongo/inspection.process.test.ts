import { realTime } from "@petstore/runtime/clock";
import { ObjectId } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, mongodMissing, startReplicaSet } from "../../../test/harness/mongod.ts";
import { mongodbMissing, openPlace, type Place, withDatabaseName } from "../../../test/harness/mongodb.ts";
import { openForTest, withDatabase } from "../fixtures/mongo.ts";
import { Corrupt, type Doc, put, schema, UnusableServer } from "../port.ts";
import { databaseName } from "./database.ts";
import { inspectDatabase } from "./inspection.ts";

interface Thing extends Doc {
  readonly size?: number;
}
const THINGS = schema<Thing>()("things", { size: ["size"] }, undefined, ({ size }) => ({ size }));

describe.skipIf(mongodbMissing)("a database", () => {
  let place: Place;
  beforeAll(async () => {
    place = await openPlace();
  });
  afterAll(() => place.stop());

  async function look<R>(work: (of: Awaited<ReturnType<typeof inspectDatabase>>) => Promise<R>): Promise<R> {
    const inspection = await inspectDatabase(place.uri, "things", realTime);
    try {
      return await work(inspection);
    } finally {
      await inspection.close();
    }
  }
  const byHand = <R>(work: Parameters<typeof withDatabase<R>>[2]) =>
    withDatabase(place.uri, databaseName(place.uri, "things"), work);

  test("is seen whoever works with it, and who does is seen too", async () => {
    const store = await openForTest(place.uri, "things");
    const things = await store.collection(THINGS);
    for (const _id of [1, 2, 10, "a"]) await things.update(_id, () => put({ _id, size: 1 }, undefined));
    await look(async ({ page, many, read, sequences, isInUse, problems, wrongIndexes }) => {
      expect((await page("things", 3)).map(({ _id }) => _id)).toEqual([1, 2, 10]);
      expect((await page("things", 3, 10)).map(({ _id }) => _id)).toEqual(["a"]);
      expect((await page("things", 3, "a")).length).toBe(0);
      expect((await many("things", [10, 7])).map((row) => read(row, THINGS))).toMatchObject([{ _id: 10, size: 1 }]);
      expect(await sequences()).toEqual([]);
      expect(await isInUse()).toBe(true);
      expect(await problems()).toEqual([]);
      expect(await wrongIndexes(THINGS)).toEqual([]);
    });
    await store.close();
    expect(await look(({ isInUse }) => isInUse())).toBe(false);
  });

  test("is seen with the versions of the processes that say theirs, and of no other petstore's", async () => {
    const others = withDatabaseName(place.uri, "others");
    await using stack = new AsyncDisposableStack();
    for (const [uri, version] of [
      [place.uri, "1.0.0"],
      [place.uri, "1.1.0"],
      [place.uri, undefined],
      [others, "0.9.0"],
    ] as const) {
      const store = await openForTest(uri, "things", { version });
      stack.defer(() => store.close());
    }
    expect(await look(({ versions }) => versions())).toEqual(new Set(["1.0.0", "1.1.0"]));
  });

  test("is not in use while others on the same server are", async () => {
    const other = await openForTest(withDatabaseName(place.uri, "others"), "things", { version: "1.0.0" });
    expect(await look(({ isInUse }) => isInUse())).toBe(false);
    await other.close();
  });

  test("is not in use once who watched it has ended, though the server goes on waiting for changes for a while", async () => {
    const store = await openForTest(place.uri, "things", { version: "1.0.0" });
    const things = await store.collection(THINGS);
    const { signal } = new AbortController();
    const changes = await things.changes({ signal });
    const told = Array.fromAsync(changes);
    await withDatabase(place.uri, "admin", async (admin) => {
      /** Begun just now. */
      const waiting = {
        "command.getMore": { $exists: true },
        appName: /^petstore/,
        microsecs_running: { $lt: 100_000 },
      };
      const seen = async () => (await admin.command({ currentOp: true, ...waiting })).inprog;
      await expect.poll(seen, { interval: 20 }).not.toEqual([]);
    });
    await store.close();
    expect(await look(({ isInUse }) => isInUse())).toBe(false);
    expect(await told).toEqual([]);
  });

  test("with what no petstore has written is read to its end", async () => {
    const foreign = new ObjectId();
    await byHand((db) =>
      db.collection<{ _id: ObjectId | number; rev: number }>("things").insertOne({ _id: foreign, rev: 1 }),
    );
    await look(async ({ page, read }) => {
      const [row, ...more] = await page("things", 3, "a");
      expect([String(row?._id), more]).toEqual([String(foreign), []]);
      expect(() => read(row as never, THINGS)).toThrow(Corrupt);
      expect(await page("things", 3, foreign as never)).toEqual([]);
    });
  });

  test("an index that is another one is named, and makes way for the next start's", async () => {
    await byHand(async (db) => {
      await db.collection("things").dropIndexes();
      await db.collection("things").createIndex({ size: 1, _id: 1 });
    });
    await look(async ({ wrongIndexes, dropIndexes }) => {
      expect(await wrongIndexes(THINGS)).toEqual([expect.stringContaining("size, _id of things")]);
      await dropIndexes(THINGS);
    });
    const store = await openForTest(place.uri, "things");
    await store.collection(THINGS);
    await store.close();
    expect(await look(({ wrongIndexes }) => wrongIndexes(THINGS))).toEqual([]);
    expect(await look(({ wrongIndexes }) => wrongIndexes({ ...THINGS, name: "others" }))).toHaveLength(1);
  });

  test("of another format, or of none, is a problem", async () => {
    for (const [change, text] of [
      [{ $set: { format: 99 } }, "a newer petstore"],
      [{ $unset: { format: 1 } }, "does not say that it is a petstore's"],
    ] as const) {
      await byHand((db) => db.collection("_petstore").updateOne({}, change));
      expect(await look(({ problems }) => problems())).toEqual([
        { about: "identity", text: expect.stringContaining(text) },
      ]);
    }
  });
});

test.skipIf(mongodMissing)(
  "a server that is slow to tell of its oplog is not taken for one with another clock",
  async () => {
    await using set = await startReplicaSet({ arguments: ["--setParameter", "enableTestCommands=1"] });
    await (await openForTest(set.uri, "things")).close();
    const data = { failCommands: ["collStats"], appName: "petstore doctor", blockConnection: true, blockTimeMS: 2_500 };
    await ask(set.members[0]?.host, { configureFailPoint: "failCommand", mode: "alwaysOn", data });
    const { problems, close } = await inspectDatabase(set.uri, "things", realTime);
    expect(await problems()).toEqual([]);
    await close();
  },
);

test("a server that does not answer is not waited for", { timeout: 30_000 }, async () => {
  await expect(inspectDatabase("mongodb://127.0.0.1:1/?replicaSet=rs0", "things", realTime)).rejects.toThrow(
    UnusableServer,
  );
});
