/** Whatever ends a process that writes, or the server itself: what was answered is there. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../../../test/harness/mongod.ts";
import { isComplete, record } from "../fixtures/crash-writer.ts";
import { openForTest, withDatabase } from "../fixtures/mongo.ts";

const CHILD = join(import.meta.dirname, "../fixtures/mongo-crash-child.ts");

describe.skipIf(mongodMissing)("kill -9", () => {
  let set: ReplicaSet;
  let child: ChildProcess | undefined;
  beforeEach(async () => {
    set = await startReplicaSet();
  });
  afterEach(async () => {
    child?.kill("SIGKILL");
    await set?.stop();
  });

  async function killWhileItWrites(victim: (child: ChildProcess) => Promise<void>, rounds: number): Promise<void> {
    const answered = record();
    await expectNothingLost(answered);
    for (let round = 0; round < rounds; round++) {
      const run = spawn(process.execPath, [CHILD, set.uri, "pet", `${answered.nextFree()}`], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      child = run;
      const exit = once(run, "close");
      const enough = 100 + Math.floor(Math.random() * 1000);
      let lines = 0;
      for await (const line of createInterface({ input: run.stdout })) {
        if (isComplete(line)) answered.add(line);
        if (++lines === enough) await victim(run);
        if (lines === 2 * enough) run.kill("SIGKILL");
      }
      expect(await exit).toEqual([null, "SIGKILL"]);
      expect(lines).toBeGreaterThanOrEqual(enough);
      // What the process sent last is made though it has ended, and until then its connection is there.
      await expect.poll(connections).toEqual([]);
      await expectNothingLost(answered);
    }
  }

  const connections = () =>
    withDatabase(set.uri, "admin", async (db) => {
      const { inprog } = await db.command({ currentOp: true, $all: true, appName: /^petstore/ });
      return inprog.map(({ desc }: { readonly desc: string }) => desc);
    });

  async function expectNothingLost(answered: ReturnType<typeof record>): Promise<void> {
    const store = await openForTest(set.uri, "pet");
    expect(await answered.lost(store)).toEqual([]);
    await store.close();
  }

  test(
    "of the process that writes, four times: nothing answered is lost, and all of it is told",
    { timeout: 300_000 },
    () => killWhileItWrites(async (run) => void run.kill("SIGKILL"), 4),
  );

  test(
    "of the server, three times: nothing answered is lost, all of it is told, and the process goes on",
    { timeout: 300_000 },
    () =>
      killWhileItWrites(async () => {
        const member = await set.primary();
        member.signal("SIGKILL");
        await member.restart();
      }, 3),
  );
});
