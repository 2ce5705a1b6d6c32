import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe } from "vitest";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../../../test/mongod.ts";
import { conformance } from "./conformance.ts";
import { dropDatabase, openForTest } from "./fixtures/mongo.ts";

describe.skipIf(mongodMissing)("on one member", () => {
  let set: ReplicaSet;
  beforeAll(async () => {
    set = await startReplicaSet();
  });
  afterAll(() => set?.stop());

  conformance("the MongoDB engine", async (clock) => {
    const service = randomBytes(6).toString("hex");
    let store = await openForTest(set.uri, service, { clock });
    return {
      store,
      async reopen() {
        await store.close();
        store = await openForTest(set.uri, service, { clock });
        return store;
      },
      async end() {
        await store.close();
        await dropDatabase(set.uri, `petstore_${service}`);
      },
    };
  });
});
