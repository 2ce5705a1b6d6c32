/** Which process goes first where all want more than there are processors. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { constants, getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../packages/runtime/fixtures/run.ts";
import { processNames } from "../processes/names.ts";
import { freePorts } from "../test/harness/instances.ts";

const script = join(import.meta.dirname, "main.ts");

const mayGoFirst = spawnSync(process.execPath, ["-e", "require('os').setPriority(-1)"]).status === 0;
if (!mayGoFirst)
  process.stderr.write("NOT RUN: which process goes first. Only root may let one, which runs these tests to try it.\n");

test.skipIf(!mayGoFirst)(
  "the gateway goes before the services, also when it was started again",
  { timeout: 60_000 },
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "priority-"));
    onTestFinished(() => rm(dataDir, { recursive: true }));
    const env = {
      DATA_DIR: dataDir,
      PORT_BASE: `${await freePorts()}`,
      LOG_LEVEL: "debug",
      PATH: process.env.PATH ?? "",
    };
    await using it = run([script], env);
    await it.printed(/is ready/);
    const pids = (name: string) =>
      it
        .output()
        .matchAll(new RegExp(`"service":"${name}","pid":(\\d+)`, "g"))
        .map(([, pid]) => Number(pid))
        .toArray();
    const priorities = () => processNames.map((name) => getPriority(pids(name).at(-1)));
    const first = constants.priority.PRIORITY_HIGH;
    const expected = processNames.map((name) => (name === "gateway" ? first : getPriority()));
    expect(priorities()).toEqual(expected);
    process.kill(pids("gateway").at(-1) ?? 0, "SIGKILL");
    await it.printed(/^gateway is back at/m);
    // Its own lines may come later than what the launcher says of it.
    await expect.poll(() => new Set(pids("gateway")).size).toBe(2);
    expect(priorities()).toEqual(expected);
  },
);
