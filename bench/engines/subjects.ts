/** The subjects: the store's engines, and the driver called once for each operation. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realTime } from "@petstore/runtime/clock";
import { type Doc, put, type Store, schema } from "@petstore/store/port";
import { type Collection as DriverCollection, MongoClient, ReadConcern } from "mongodb";
import { openForTest } from "../../packages/store/fixtures/mongo.ts";
import { silent } from "../../packages/store/fixtures/silent.ts";
import { openEmbedded } from "../../packages/store/sqlite/sqlite.ts";

export interface Item extends Doc {
  readonly _id: number;
  readonly name: string;
  readonly count: number;
  readonly listed: true;
  readonly shelf: number;
}
const ITEMS = schema<Item>()("items", { listed: ["listed"], shelf: ["listed", "shelf"] });

/** Documents in a page of `list`. */
const PAGE = 20;
export const SHELVES = 50;

export interface Subject {
  readonly name: string;
  read(id: number): Promise<unknown>;
  insert(item: Omit<Item, "rev">): Promise<unknown>;
  /** Adds one to the document's count. */
  increment(id: number): Promise<unknown>;
  list(shelf: number): Promise<unknown>;
  nextId(): Promise<unknown>;
  close(): Promise<void>;
}

async function engine(name: string, store: Store): Promise<Subject> {
  const items = await store.collection(ITEMS);
  return {
    name,
    read: (id) => items.get(id),
    insert: (item) => items.update(item._id, () => put(item, undefined)),
    increment: (id) => items.update(id, (item) => put({ ...(item as Item), count: (item?.count ?? 0) + 1 }, undefined)),
    list: (shelf) => items.list({ where: { listed: true, shelf }, limit: PAGE, order: "desc" }),
    nextId: () => store.nextId("items"),
    close: () => store.close(),
  };
}

export async function embedded(): Promise<Subject> {
  const dir = mkdtempSync(join(tmpdir(), "petstore-bench-"));
  const store = await openEmbedded(join(dir, "bench.db"), {
    ...realTime,
    log: silent,
    onFatal: (error) => {
      throw error;
    },
  });
  const subject = await engine("embedded", store);
  const close = () => subject.close().finally(() => rmSync(dir, { recursive: true }));
  return { ...subject, close };
}

export const mongodb = async (uri: string): Promise<Subject> => engine("engine", await openForTest(uri, "bench"));

/**
 * Calls the driver once for each operation, with the engine's guarantees except one: it does not find out whether a change
 * whose answer is lost took place. It shares only the server with the engine.
 */
export async function driver(uri: string): Promise<Subject> {
  const client = new MongoClient(uri);
  const db = client.db("petstore_driver", {
    readConcern: new ReadConcern("majority"),
    writeConcern: { w: "majority", journal: true },
  });
  const items: DriverCollection<Item> = db.collection<Item>("items");
  const sequences = db.collection<{ _id: string; last: number }>("sequences");
  await items.createIndexes([{ key: { listed: 1, _id: 1 } }, { key: { listed: 1, shelf: 1, _id: 1 } }]);
  return {
    name: "driver",
    read: (id) => items.findOne({ _id: id }),
    insert: (item) => items.insertOne({ ...item, rev: 1 }),
    async increment(id) {
      for (;;) {
        const item = (await items.findOne({ _id: id })) as Item;
        const next = { ...item, count: item.count + 1, rev: item.rev + 1 };
        if (await items.findOneAndReplace({ _id: id, rev: item.rev }, next)) return;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 16));
      }
    },
    list: (shelf) => items.find({ listed: true, shelf }).sort({ _id: -1 }).limit(PAGE).toArray(),
    nextId: () => sequences.findOneAndUpdate({ _id: "items" }, { $inc: { last: 1 } }, { upsert: true }),
    close: () => client.close(),
  };
}
