/** The stores of one process share their clients, until the last of these stores is closed. */
import { realTime } from "@petstore/runtime/clock";
import { describe, expect, test } from "vitest";
import { mongodMissing, startReplicaSet } from "../../../test/harness/mongod.ts";
import { clientsAt } from "../fixtures/mongo.ts";
import { silent } from "../fixtures/silent.ts";
import { storesOfOneProcess } from "../open.ts";
import { type Doc, put, schema } from "../port.ts";

const timeout = 120_000;
interface Named extends Doc {
  readonly name: string;
}
const THINGS = schema<Named>()("things", {}, undefined, ({ name }) => ({ name }));

describe.skipIf(mongodMissing)("stores of one process", () => {
  test("share a client for calls and one for changes, which are closed with the last of them", {
    timeout,
  }, async () => {
    await using set = await startReplicaSet();
    const openStore = storesOfOneProcess();
    const open = async (service: string) => {
      const config = { service, dataDir: "", mongodbUri: { reveal: () => set.uri } };
      const onFatal = (error: unknown) => expect.fail(`${error}`);
      const store = await openStore(config, { ...realTime, log: silent, onFatal });
      return { ...store, things: await store.collection(THINGS) };
    };
    const [pet, order] = await Promise.all([open("pet"), open("order")]);
    for (const [name, { things }] of Object.entries({ pet, order }))
      await things.update(1, () => put({ _id: 1, name }, undefined));
    // A client does not watch for a moment where the server was slow to answer it.
    await expect.poll(() => clientsAt(set.uri)).toBe(1);

    const { signal } = new AbortController();
    const [changesOfPets, changes] = await Promise.all([
      pet.things.changes({ signal }),
      order.things.changes({ signal }),
    ]);
    await expect.poll(() => clientsAt(set.uri)).toBe(2);

    await pet.close();
    for await (const _ of changesOfPets) expect.fail("a change of a store that is closed");
    expect(await order.things.get(1)).toMatchObject({ name: "order" });
    await order.things.update(2, () => put({ _id: 2, name: "another" }, undefined));
    for await (const [change] of changes) {
      expect(change).toMatchObject({ _id: 2, shown: { name: "another" } });
      break;
    }
    await expect.poll(() => clientsAt(set.uri)).toBe(2);

    await order.close();
    await expect.poll(() => clientsAt(set.uri)).toBe(0);
  });
});
