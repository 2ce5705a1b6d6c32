/** What MongoDB keeps for readers of changes that have left. */
import { setTimeout as sleep } from "node:timers/promises";
import { MongoClient } from "mongodb";
import { expect, test } from "vitest";
import { mongodMissing, startReplicaSet } from "../../../test/harness/mongod.ts";
import { openForTest } from "../fixtures/mongo.ts";
import { type Doc, schema } from "../port.ts";

interface Counter extends Doc {
  readonly count: number;
}
const COUNTERS = schema<Counter>()("counters", {}, undefined, ({ count }) => ({ count }));

test.skipIf(mongodMissing)("no cursor stays open for who leaves while it is opened", { timeout: 60_000 }, async () => {
  await using set = await startReplicaSet();
  await using stack = new AsyncDisposableStack();
  const store = await openForTest(set.uri, "cursors");
  stack.defer(() => store.close());
  const client = new MongoClient(set.uri);
  stack.defer(() => client.close());
  const open = async () => (await client.db("admin").command({ serverStatus: 1 })).metrics.cursor.open.total;
  const counters = await store.collection(COUNTERS);
  for (let i = 0; i < 100; i++) {
    const over = new AbortController();
    const reading = counters.changes({ signal: over.signal }).catch(() => {});
    await sleep(i % 10);
    over.abort();
    await reading;
  }
  await expect.poll(open).toBe(0);
});
