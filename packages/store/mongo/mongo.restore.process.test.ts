/** The backup that docs/backup.md describes: the files of a member at one instant, started as a set of its own. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MongoClient } from "mongodb";
import { expect, onTestFinished, test } from "vitest";
import { freePorts, mongodMissing, startMongod } from "../../../test/harness/mongod.ts";
import { range } from "../conformance/subject.ts";
import { openForTest } from "../fixtures/mongo.ts";
import { type Doc, put, type Store, schema } from "../port.ts";

interface Counter extends Doc {
  readonly count: number;
}
const COUNTERS = schema<Counter>()("counters", {});
const SERVICES = ["pet", "inventory"];
const IDS = range(20);

test.skipIf(mongodMissing)(
  "all that was answered before the instant is in the backup, and later is as if it had not been",
  async () => {
    const dir = mkdtempSync(join(tmpdir(), "petstore-restore-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const [port = 0, restoredPort = 0] = await freePorts(2);
    const args = ["--replSet", "rs"];
    const admin = async (at: number, command: object) => {
      await using client = new MongoClient(`mongodb://127.0.0.1:${at}/?directConnection=true`);
      return await client.db("admin").command({ ...command });
    };
    const uri = (at: number) => `mongodb://127.0.0.1:${at}/?replicaSet=rs`;
    const add = async (store: Store) => {
      const counters = await store.collection(COUNTERS);
      const once = (id: number) => counters.update(id, (doc) => put({ _id: id, count: (doc?.count ?? 0) + 1 }, 0));
      await Promise.all(IDS.map(once));
      await store.nextId("ids");
    };

    const server = await startMongod({ port, dir: join(dir, "data"), args });
    try {
      await admin(port, { replSetInitiate: { _id: "rs", members: [{ _id: 0, host: `127.0.0.1:${port}` }] } });
      const stores = await Promise.all(SERVICES.map((service) => openForTest(uri(port), service)));
      for (let i = 0; i < 3; i++) await Promise.all(stores.map(add));

      await admin(port, { fsync: 1, lock: true });
      // Writes wait for the end of the backup; some of them only come after it.
      const waiting = stores.map(add);
      cpSync(join(dir, "data"), join(dir, "backup"), { recursive: true });
      await admin(port, { fsyncUnlock: 1 });
      await Promise.all(waiting);
      await Promise.all(stores.map((store) => store.close()));
    } finally {
      await server.stop();
    }

    rmSync(join(dir, "backup", "mongod.lock"));
    const restored = await startMongod({ port: restoredPort, dir: join(dir, "backup"), args });
    try {
      const { config } = await admin(restoredPort, { replSetGetConfig: 1 });
      const members = [{ _id: 0, host: `127.0.0.1:${restoredPort}` }];
      await admin(restoredPort, { replSetReconfig: { ...config, members, version: config.version + 1 }, force: true });
      for (const service of SERVICES) {
        const store = await openForTest(uri(restoredPort), service);
        const counters = await store.collection(COUNTERS);
        expect(await counters.getMany(IDS)).toEqual(IDS.map((_id) => ({ _id, rev: 3, count: 3 })));
        await add(store);
        // The number that was at hand at the instant is a gap.
        expect([5, 6]).toContain(await store.nextId("ids"));
        expect(await counters.getMany(IDS)).toEqual(IDS.map((_id) => ({ _id, rev: 4, count: 4 })));
        await store.close();
      }
    } finally {
      await restored.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  },
);
