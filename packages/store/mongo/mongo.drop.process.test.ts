/** What an operator drops, renames or replaces while processes use it, as `mongorestore --drop` does. */
import type { Db } from "mongodb";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../../../test/harness/mongod.ts";
import { openForTest, withDatabase } from "../fixtures/mongo.ts";
import { type Collection, type Doc, Expired, type Position, put, schema } from "../port.ts";
import { databaseName, type MongoOptions } from "./mongo.ts";

interface Item extends Doc {
  readonly _id: number;
  readonly name: string;
}
const ITEMS = schema<Item>()("items", { name: ["name"] }, undefined, ({ name }) => (name ? { name } : undefined));
type Items = Collection<Item, typeof ITEMS.indexes, { readonly name: string }>;

/** What happens to the collection, and what is in it afterwards. */
const EVENTS: [string, (db: Db) => Promise<unknown>][] = [
  ["is dropped", (db) => db.collection("items").drop()],
  ["is renamed", (db) => db.collection("items").rename("others")],
  ["is dropped with its database", (db) => db.dropDatabase()],
  [
    "is replaced by another",
    async (db) => {
      await db.collection("others").insertOne({});
      await db.collection("others").rename("items", { dropTarget: true });
    },
  ],
];

describe.skipIf(mongodMissing)("data that an operator drops under running processes", () => {
  let set: ReplicaSet;
  let service: string;
  let tests = 0;
  beforeAll(async () => {
    set = await startReplicaSet();
  });
  beforeEach(() => {
    service = `drop${tests++}`;
  });
  afterAll(() => set?.stop());

  const inDatabase = (look: (db: Db) => Promise<unknown>) =>
    withDatabase(set.uri, databaseName(set.uri, service), look);

  /** A process of the service, and what it logs. */
  async function start(options: Partial<MongoOptions> = {}) {
    const logged: string[] = [];
    const log = pino({}, { write: (line) => void logged.push(line) });
    const store = await openForTest(set.uri, service, { log, ...options });
    onTestFinished(() => store.close());
    return { items: (await store.collection(ITEMS)) as Items, store, logged };
  }

  const save = (items: Items, _id: number, name: string) => items.update(_id, () => put({ _id, name }, undefined));
  const names = async (items: Items, name: string) => {
    const query = { where: { name }, limit: 9, order: "asc" } as const;
    return (await items.list(query, { deadline: Date.now() + 30_000 })).map(({ _id }) => _id);
  };

  /** Whoever reads from there on. `read` grows; `over` resolves to the error that ends it, if one does. */
  async function reader(items: Items, after?: Position) {
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const changes = await items.changes({ after, signal: stop.signal });
    const positions = [changes.position];
    const read: string[] = [];
    const over = (async () => {
      try {
        for await (const batch of changes) {
          read.push(...batch.map(({ _id, shown }) => `${_id} ${shown.name}`));
          positions.push(...batch.map(({ position }) => position));
        }
      } catch (error) {
        return error;
      } finally {
        positions.push(changes.position);
      }
    })();
    return { read, positions, over };
  }
  const readingFrom = async (items: Items, after: Position) =>
    reader(items, after).then(
      ({ over }) => over,
      (error: unknown) => error,
    );

  test.each(EVENTS)(
    "when a collection %s, all who watch it are ended, and every position from before has expired",
    async (_, event) => {
      const [one, other] = [await start(), await start()];
      const readers = [await reader(one.items), await reader(one.items), await reader(other.items)];
      await save(one.items, 1, "a");
      await save(other.items, 2, "b");
      for (const { read } of readers) await expect.poll(() => read).toEqual(["1 a", "2 b"]);
      await inDatabase(event);

      for (const { over } of readers) expect(await over).toBeInstanceOf(Expired);
      for (const { logged } of [one, other]) {
        expect(logged).toHaveLength(1);
        expect(JSON.parse(logged[0] as string)).toMatchObject({
          msg: expect.stringMatching(/items.*dropped or renamed/),
        });
      }
      await save(one.items, 3, "c");
      const positions = [...new Set(readers.flatMap((ended) => ended.positions))];
      expect(positions.length).toBeGreaterThan(2);
      const restarted = await start();
      for (const { items } of [one, other, restarted])
        for (const position of positions) expect(await readingFrom(items, position)).toBeInstanceOf(Expired);
    },
  );

  test.each(EVENTS)("when a collection %s, every process reads, lists and watches it again", async (_, event) => {
    const processes = [await start(), await start()];
    for (const [i, { items }] of processes.entries()) await save(items, i, "before");
    await inDatabase(event);
    for (const [i, { items }] of processes.entries()) {
      const { read } = await reader(items);
      await save(items, i, "after");
      expect(await names(items, "after")).toEqual(i === 0 ? [0] : [0, 1]);
      expect(await names(items, "before")).toEqual([]);
      await expect.poll(() => read).toEqual([`${i} after`]);
    }
  });

  test("what is restored is told to who watches, whatever was the last change of a record", async () => {
    const { items } = await start();
    await save(items, 1, "inserted");
    for (const name of ["a", "changed"]) await save(items, 2, name);
    for (const name of ["unchanged", "unchanged"]) await save(items, 3, name);
    for (const name of ["gone", ""]) await save(items, 4, name);
    for (const name of ["", ""]) await save(items, 5, name);
    await inDatabase(async (db) => {
      const backup = await db.collection("items").find().toArray();
      await db.collection("items").drop();
      const { read } = await reader((await start()).items);
      await db.collection("items").insertMany(backup);
      await save(items, 6, "last");
      await expect.poll(() => read).toEqual(["1 inserted", "2 changed", "3 unchanged", "4 gone", "6 last"]);
    });
  });

  test("a sequence goes on above the numbers that a process has taken", async () => {
    // The clock stands still: numbers that are at hand for ten seconds are asked for again.
    const { store, logged } = await start({ clock: () => 0 });
    const counters = (db: Db) => db.collection<{ _id: string; last: number }>("_sequences");
    /** Once the next number is at hand. */
    const taken = (last: number) =>
      expect.poll(() => inDatabase((db) => counters(db).findOne({ _id: "ids" }))).toMatchObject({ last });
    for (const number of [1, 2, 3]) expect(await store.nextId("ids")).toBe(number);
    await taken(4);
    await inDatabase((db) => counters(db).drop());
    expect(await Promise.all([store.nextId("ids"), store.nextId("ids")])).toEqual([4, 5]);
    await taken(6);
    await inDatabase((db) => counters(db).updateOne({ _id: "ids" }, { $set: { last: 2 } }));
    expect(await store.nextId("ids")).toBe(6);
    await taken(7);
    expect(await (await start()).store.nextId("ids")).toBe(8);
    expect(logged.map((line) => JSON.parse(line).msg)).toEqual([
      expect.stringContaining("goes on after 4"),
      expect.stringContaining("goes on after 6"),
    ]);
  });

  test("a database says again in which format its data are", async () => {
    const { store } = await start();
    const format = () => inDatabase((db) => db.collection<{ _id: string }>("_petstore").findOne({ _id: "format" }));
    const before = await format();
    await inDatabase((db) => db.dropDatabase());
    await store.ping();
    expect(await format()).toEqual(before);
  });
});
