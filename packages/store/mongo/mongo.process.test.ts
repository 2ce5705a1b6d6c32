import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe } from "vitest";
import { mongodbMissing, openPlace, type Place } from "../../../test/harness/mongodb.ts";
import { conformance } from "../conformance/suite.ts";
import { dropDatabase, openForTest, withDatabase } from "../fixtures/mongo.ts";
import { databaseName } from "./mongo.ts";

describe.skipIf(mongodbMissing)("on MongoDB", () => {
  let place: Place;
  beforeAll(async () => {
    place = await openPlace();
  });
  afterAll(() => place?.stop());

  conformance("the MongoDB engine", async (clock) => {
    const service = randomBytes(6).toString("hex");
    let store = await openForTest(place.uri, service, { clock });
    return {
      store,
      async reopen() {
        await store.close();
        store = await openForTest(place.uri, service, { clock });
        return store;
      },
      async spoil(collection, docs) {
        await store.close();
        await withDatabase(place.uri, databaseName(place.uri, service), async (db) => {
          const replacements = docs.map(({ _id, ...doc }) => ({
            replaceOne: { filter: { _id: _id as never }, replacement: { ...doc, _operations: [] } },
          }));
          await db.collection(collection).bulkWrite(replacements, { ignoreUndefined: true });
        });
      },
      // Long before the oplog begins.
      forget: (position) => `82${"00000001".repeat(2)}${position.slice(18)}`,
      async end() {
        await store.close();
        await dropDatabase(place.uri, service);
      },
    };
  });
});
