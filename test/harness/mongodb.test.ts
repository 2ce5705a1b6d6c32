import { describe, expect, test } from "vitest";
import { openForTest } from "../../packages/store/fixtures/mongo.ts";
import { mongodReporter } from "./missing-tools-reporter.ts";
import { mongodMissing, startReplicaSet } from "./mongod.ts";
import { openPlace, withDatabaseName } from "./mongodb.ts";

test.each([
  ["mongodb://a", "mongodb://a/t?"],
  ["mongodb://a,b:1/shop?replicaSet=rs", "mongodb://a,b:1/t?replicaSet=rs"],
  ["mongodb+srv://me:x@a/", "mongodb+srv://me:x@a/t?authSource=admin"],
  ["mongodb://me:x@a/shop?w=1", "mongodb://me:x@a/t?authSource=shop&w=1"],
  ["mongodb://me:x@a/?tls=true&authSource=x", "mongodb://me:x@a/t?tls=true&authSource=x"],
])("%s becomes %s", (uri, expected) => expect(withDatabaseName(uri, "t")).toBe(expected));

test.skipIf(mongodMissing)("a place on a given server leaves nothing behind and everything else alone", async () => {
  await using set = await startReplicaSet();
  const place = await openPlace(set.uri);
  const other = await openPlace(set.uri);
  expect(place.uri).not.toBe(other.uri);
  for (const uri of [place.uri, other.uri]) {
    const store = await openForTest(uri, "pet");
    expect(await store.nextId("ids")).toBe(1);
    await store.close();
  }
  await place.stop();
  const [again, untouched] = [await openForTest(place.uri, "pet"), await openForTest(other.uri, "pet")];
  expect([await again.nextId("ids"), await untouched.nextId("ids")]).toEqual([1, 2]);
  await again.close();
  await untouched.close();
});

describe("a run in which something is missing", () => {
  test("fails in CI before it starts", () => {
    expect(() => mongodReporter({ CI: "true" }, ["NOT RUN: this", "NOT RUN: that"])).toThrow(/this.*that/s);
  });
  test("says so at its end elsewhere, and nothing when all is there", () => {
    expect(mongodReporter({}, ["NOT RUN: this"])).toHaveProperty("onTestRunEnd");
    expect(mongodReporter({ CI: "true" }, [])).toEqual({});
  });
});
