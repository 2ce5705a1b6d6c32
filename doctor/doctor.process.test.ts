/** Damage that is made by hand is named, and what is safe to mend is mended, on both engines. */
import { once } from "node:events";
import { cp, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { takeDirectory } from "@petstore/store/directory";
import { put } from "@petstore/store/port";
import { type Db, type Document, MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { databaseName } from "../packages/store/mongo/mongo.ts";
import { serviceNames } from "../processes/names.ts";
import { FORMAT_MARKS } from "../services/records/formats.ts";
import { freePorts } from "../test/harness/instances.ts";
import { mongodbMissing, openPlace, withDatabaseName } from "../test/harness/mongodb.ts";
import { openStoreOf } from "../test/harness/stores.ts";
import { examine, mend } from "./doctor.ts";
import type { Finding } from "./findings.ts";
import { type Damage, damages, inDatabase, inFile } from "./fixtures/damage.ts";
import { configOf, fillShop, type Place, withServices } from "./fixtures/shop.ts";
import { openStores } from "./stores.ts";

const said: string[] = [];
const options = { time: realTime, say: (text: string) => void said.push(text) };
const look = (place: Place) => examine(configOf(place), options);
const short = (found: readonly Finding[]) =>
  found.map(({ invariant, ids, repair }) => ({
    invariant,
    ids: ids.map((id) => id.replace(/-key\/.*/, "-key/*")),
    repair,
  }));

/** Whether what pets say of themselves is what Inventory says of them. */
const readsAgree = (place: Place) =>
  withServices(place, async ({ pathTo }) => {
    const { pets } = await createClient(PetService, pathTo("pet")).listPets({});
    const { items } = await createClient(InventoryService, pathTo("inventory")).listInventory({});
    const statuses = (all: readonly { readonly status?: unknown }[], id: "id" | "petId") =>
      all.map((one) => [(one as never)[id], one.status]);
    expect(statuses(pets, "id")).toEqual(statuses(items, "petId"));
  });

interface Engine {
  place(): Promise<Place>;
  damaged(place: Place, damage: Pick<Damage, "service" | "make">): Promise<void>;
}

function tryAll(engine: Engine): void {
  test("nothing is found where nothing is wrong, and nothing is changed", async () => {
    const place = await engine.place();
    expect(await look(place)).toEqual([]);
    expect(await mend(configOf(place), false, options)).toEqual([]);
  });

  test("a key may wait for its record for a day", async () => {
    const place = await engine.place();
    const make: Damage["make"] = async (hand) => {
      await hand.setSequence(9);
      await hand.change(
        "keys",
        ({ recordId }) => recordId === 4,
        (doc) => ({ ...doc, recordId: 7 }),
      );
    };
    await engine.damaged(place, { service: "order", make });
    expect(await look(place)).toEqual([]);
  });

  test("a guard that a crash left closed is opened by the next pet", async () => {
    const place = await engine.place();
    const make: Damage["make"] = ({ change }) =>
      change(
        "deletion_guards",
        ({ _id }) => _id === 1,
        (doc) => ({ ...doc, closed: true, endedOn: 30_000 }),
      );
    await engine.damaged(place, { service: "pet", make });
    expect(await look(place)).toEqual([]);
    await withServices(place, async ({ pathTo }) => {
      const { pet } = await createClient(PetService, pathTo("pet")).createPet({ pet: { name: "Bea", categoryId: 1n } });
      expect(pet?.categoryId).toBe(1n);
    });
  });

  test("what a later version has begun to write in another format is for that version's doctor", async () => {
    const place = await engine.place();
    const store = await openStoreOf({ store: place }, "pet");
    const marks = await store.collection(FORMAT_MARKS);
    await marks.update("pets", () => put({ _id: "pets", format: 99, by: "9.0.0" }, undefined));
    await store.close();
    try {
      await expect(look(place)).rejects.toThrow(/^9\.0\.0 .*: start 9\.0\.0/);
    } finally {
      const again = await openStoreOf({ store: place }, "pet");
      await (await again.collection(FORMAT_MARKS)).remove("pets", () => true);
      await again.close();
    }
  });

  test.each(damages)("$title: $finds.invariant, $finds.repair", async (damage) => {
    const place = await engine.place();
    await engine.damaged(place, damage);
    const found = await look(place);
    expect(short(found)).toContainEqual(damage.finds);
    said.length = 0;
    expect(short(await mend(configOf(place), true, options))).toEqual(short(found));
    expect(said.filter((text) => !text.startsWith("would mend"))).toEqual([]);
    const left = await mend(configOf(place), false, options);
    if (damage.finds.repair === "manual") return expect(short(left)).toContainEqual(damage.finds);
    expect(left).toEqual([]);
    expect(said.length).toBeGreaterThan(0);
    await readsAgree(place);
  });
}

describe("the embedded engine", () => {
  let root: string;
  let count = 0;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "doctor-"));
    await fillShop({ dataDir: join(root, "whole"), mongodbUri: undefined });
  });
  afterAll(() => rm(root, { recursive: true }));

  tryAll({
    async place() {
      const dataDir = join(root, `${++count}`);
      await cp(join(root, "whole"), dataDir, { recursive: true });
      return { dataDir, mongodbUri: undefined };
    },
    damaged: (place, { service, make }) => inFile(place, service, make),
  });

  async function afterCopy(damage: (dataDir: string) => Promise<void>) {
    const dataDir = join(root, `${++count}`);
    await cp(join(root, "whole"), dataDir, { recursive: true });
    await damage(dataDir);
    return { dataDir, mongodbUri: undefined };
  }
  const sql = (service: string, change: string) => async (dataDir: string) => {
    using db = new DatabaseSync(join(dataDir, `${service}.db`), { defensive: false });
    db.exec(change);
  };

  test.each([
    [
      "a pet is not where its lists look for it",
      sql("pet", "UPDATE pets SET key_visible = NULL WHERE _id = 4"),
      { invariant: "index-missing", ids: ["pet/4"], repair: "safe" },
    ],
    [
      "the bytes of an order are cut",
      sql("order", "UPDATE orders SET doc = substr(doc, 1, 40) WHERE _id = 1"),
      { invariant: "corrupt-document", ids: ["order/1"], repair: "manual" },
    ],
    [
      "a file is gone",
      (dataDir: string) => rm(join(dataDir, "inventory.db")),
      { invariant: "identity-mixed", ids: ["inventory.db"], repair: "manual" },
    ],
    [
      "a file is none of SQLite",
      (dataDir: string) => writeFile(join(dataDir, "inventory.db"), "x".repeat(10_000)),
      { invariant: "corrupt-document", ids: ["inventory.db"], repair: "manual" },
    ],
    [
      "a file is older than the others",
      async (dataDir: string) => {
        await withServices({ dataDir, mongodbUri: undefined }, async () => {});
        await cp(join(root, "whole", "order.db"), join(dataDir, "order.db"));
      },
      { invariant: "identity-mixed", ids: ["order"], repair: "manual" },
    ],
  ] as const)("%s", async (_, damage, finds) => {
    const place = await afterCopy(damage);
    expect(short(await look(place))).toEqual([finds]);
    const left = await mend(configOf(place), false, options);
    expect(short(left)).toEqual(finds.repair === "safe" ? [] : [finds]);
  });

  /** Takes order 1 out of the index of the ids. */
  async function loseOrder(dataDir: string): Promise<void> {
    const change = (text: string) => {
      using db = new DatabaseSync(join(dataDir, "order.db"), { defensive: false });
      db.exec(text);
    };
    const both = "('fewer', 'sqlite_autoindex_orders_1')";
    change(`CREATE INDEX fewer ON orders (_id) WHERE _id > 1; PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET rootpage = (SELECT sum(rootpage) FROM sqlite_schema WHERE name IN ${both}) - rootpage
      WHERE name IN ${both}`);
    change("DROP INDEX fewer");
  }

  test("an order that the index of the ids has lost is found again, and not aborted", async () => {
    const place = await afterCopy(loseOrder);
    expect(short(await look(place))).toContainEqual({ invariant: "index-missing", ids: ["order"], repair: "safe" });
    expect(await mend(configOf(place), false, options)).toEqual([]);
    await withServices(place, async ({ pathTo }) => {
      const { order } = await createClient(OrderService, pathTo("order")).getOrder({ orderId: 1n });
      expect(order).toMatchObject({ petId: 1n, quantity: 2, complete: false });
    });
  });

  test("of two orders with one id nobody knows which is right", async () => {
    const place = await afterCopy(async (dataDir) => {
      await loseOrder(dataDir);
      await sql(
        "order",
        "INSERT INTO orders (_id, doc) SELECT 1, doc FROM orders NOT INDEXED WHERE rowid = 1",
      )(dataDir);
    });
    await expect(mend(configOf(place), false, options)).rejects.toThrow(/order.db can't be built .*restore a backup/);
  });

  test("as long as a look lasts, no petstore starts there", async () => {
    const { dataDir } = await afterCopy(async () => {});
    await using stores = await openStores(configOf({ dataDir, mongodbUri: undefined }), realTime);
    expect(stores.isLive).toBe(false);
    expect(() => takeDirectory(dataDir, "npm start")).toThrow("in use by another petstore");
    const again = look({ dataDir, mongodbUri: undefined });
    await expect(again).rejects.toThrow(`in use by another petstore (process ${process.pid}, npm run doctor)`);
  });

  test("what does not belong together is not repaired", async () => {
    const place = await afterCopy(async (dataDir) => {
      await sql("order", `UPDATE "$identity" SET id = 'another'`)(dataDir);
      await sql("pet", "UPDATE pets SET key_visible = NULL WHERE _id = 4")(dataDir);
    });
    const found = await look(place);
    expect(short(found).map(({ invariant }) => invariant)).toEqual(["identity-mixed", "index-missing"]);
    said.length = 0;
    expect(short(await mend(configOf(place), false, options))).toEqual(short(found));
    expect(said).toEqual([expect.stringContaining("nothing is repaired")]);
  });

  test("a file that is damaged as a whole is not repaired, nor what its records lack", async () => {
    const place = await afterCopy(
      sql("order", "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'orders(endedOn)'"),
    );
    const found = await look(place);
    expect(short(found)).toEqual([
      { invariant: "corrupt-document", ids: ["order"], repair: "manual" },
      { invariant: "index-missing", ids: ["order.orders"], repair: "safe" },
    ]);
    said.length = 0;
    expect(short(await mend(configOf(place), false, options))).toEqual(short(found));
    expect(said).toEqual([expect.stringContaining("nothing is repaired")]);
  });

  test("surroundings that are wrong are named beside what is stored", async () => {
    const place = await afterCopy(async (dataDir) =>
      utimes(join(dataDir, "pet.db"), new Date(), new Date("2200-01-01")),
    );
    const portBase = await freePorts();
    using _ = await listening(portBase);
    const config = { ...configOf(place), portBase, environment: { PORT_BAES: "1", HOST: "no host" } };
    const found = await examine(config, options);
    expect(found.map(({ invariant, repair }) => `${invariant} ${repair}`)).toEqual([
      "env-configuration null",
      "env-configuration null",
      "env-ports null",
      "env-clock null",
    ]);
  });
});

async function listening(port: number): Promise<Disposable> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  return { [Symbol.dispose]: () => void server.close() };
}

describe.skipIf(mongodbMissing)("MongoDB", () => {
  const stack = new AsyncDisposableStack();
  const whole: { readonly db: Db; readonly name: string; readonly docs: Document[] }[] = [];
  let place: Place;
  beforeAll(async () => {
    const { uri } = stack.use(await openPlace());
    place = { dataDir: "/dev/null/unused", mongodbUri: withDatabaseName(uri, `doctor_${process.pid}`) };
    await fillShop(place);
    const client = new MongoClient(uri);
    stack.defer(() => client.close());
    for (const service of serviceNames) {
      const db = client.db(databaseName(place.mongodbUri as string, service), { writeConcern: { w: "majority" } });
      for (const { name } of await db.listCollections().toArray())
        whole.push({ db, name, docs: await db.collection(name).find().toArray() });
    }
  });
  afterAll(() => stack.disposeAsync());

  const engine: Engine = {
    async place() {
      await Promise.all(
        whole.map(async ({ db, name, docs }) => {
          await db.collection(name).deleteMany({});
          if (docs.length > 0) await db.collection(name).insertMany(docs);
        }),
      );
      return place;
    },
    damaged: (place, { service, make }) => inDatabase(place, service, make),
  };
  tryAll(engine);

  test("databases in which there is none", async () => {
    const mongodbUri = withDatabaseName(place.mongodbUri as string, "mistyped");
    await expect(look({ dataDir: "/dev/null/unused", mongodbUri })).rejects.toThrow(
      "There is no petstore in the databases",
    );
  });

  test("a petstore that runs may be on other machines, and have its ports there", async () => {
    const place = await engine.place();
    await withServices(place, async () => expect(await look(place)).toEqual([]));
  });
});
