import { expect, test } from "vitest";
import { findMongod, mongodMissing, startReplicaSet } from "./mongod.ts";

test("MONGOD names the program, and stands above the PATH", () => {
  expect(findMongod({ MONGOD: process.execPath, PATH: "/nowhere" })).toBe(process.execPath);
  expect(findMongod({ MONGOD: "/nowhere/mongod", PATH: process.env.PATH })).toBeUndefined();
});

test.skipIf(mongodMissing)("a member that was killed comes back with its data", async () => {
  await using set = await startReplicaSet();
  const member = await set.primary();
  member.signal("SIGKILL");
  await member.restart();
  expect(await set.primary()).toBe(member);
});
