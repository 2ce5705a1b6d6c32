import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe } from "vitest";
import { mongodbMissing, openPlace, type Place } from "../../../test/mongodb.ts";
import { conformance } from "./conformance.ts";
import { dropDatabase, openForTest } from "./fixtures/mongo.ts";

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
      async end() {
        await store.close();
        await dropDatabase(place.uri, service);
      },
    };
  });
});
