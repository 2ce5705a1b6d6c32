/** Whatever ends the process: what was answered is on disk, and the next start finds it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { realTime } from "@petstore/runtime/clock";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isComplete, record } from "../fixtures/crash-writer.ts";
import { silent } from "../fixtures/silent.ts";
import { openEmbedded } from "./sqlite.ts";

const CHILD = join(import.meta.dirname, "../fixtures/sqlite-crash-child.ts");

let dir: string;
let path: string;
let child: ChildProcess | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "petstore-"));
  path = join(dir, "pet.db");
});
afterEach(() => {
  child?.kill("SIGKILL");
  rmSync(dir, { recursive: true });
});

/** Starts the child, under a limit of the size of its files (in blocks of 512 bytes) if one is given. */
function start(first: number, fileLimit: number | "unlimited") {
  const command = 'ulimit -f "$0" && exec "$@"';
  const process_ = spawn("sh", ["-c", command, `${fileLimit}`, process.execPath, CHILD, path, `${first}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  child = process_;
  return { process: process_, exit: once(process_, "close"), lines: createInterface({ input: process_.stdout }) };
}

const open = (of: string) =>
  openEmbedded(of, { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() });

async function expectNothingLost(answered: ReturnType<typeof record>): Promise<void> {
  const store = await open(path);
  expect(await answered.lost(store)).toEqual([]);
  await store.close();
}

test("killed while it writes, six times: nothing answered is lost, and all of it is told", {
  timeout: 120_000,
}, async () => {
  const answered = record();
  await expectNothingLost(answered);
  for (let round = 0; round < 6; round++) {
    const run = start(answered.nextFree(), "unlimited");
    const enough = 100 + Math.floor(Math.random() * 2000);
    const lines: string[] = [];
    for await (const line of run.lines) {
      lines.push(line);
      if (lines.length === 50) {
        await expect(open(path)).rejects.toMatchObject({ name: "StoreLocked" });
      }
      if (lines.length === enough) run.process.kill("SIGKILL");
    }
    expect(await run.exit).toEqual([null, "SIGKILL"]);
    for (const line of lines.filter(isComplete)) answered.add(line);
    expect(lines.length).toBeGreaterThanOrEqual(enough);
    const copy = join(dir, `${round}.db`);
    cpSync(path, copy);
    await expect(open(copy)).rejects.toMatchObject({ name: "Corrupt", message: expect.stringContaining("lacks its") });
    await expectNothingLost(answered);
  }
});

test("a write fails while it writes: it says so once, answers nothing more, loses nothing", {
  timeout: 60_000,
}, async () => {
  const answered = record();
  const run = start(1, 4000);
  const lines: string[] = [];
  for await (const line of run.lines) lines.push(line);
  await run.exit;
  const last = lines.filter((line) => !isComplete(line));
  expect(last).toEqual(["fatal", ...Array<string>(8).fill("doubted 1"), "afterwards Unavailable"]);
  expect(lines.slice(lines.indexOf("fatal")).filter(isComplete)).toEqual([]);
  for (const line of lines.filter(isComplete)) answered.add(line);
  expect(answered.nextFree()).toBeGreaterThan(1100);
  await expectNothingLost(answered);
});

test("the disk is full when it starts: one line that says what to do", { timeout: 60_000 }, async () => {
  const run = start(1, 0);
  const lines: string[] = [];
  for await (const line of run.lines) lines.push(line);
  await run.exit;
  expect(lines).toEqual([expect.stringMatching(/^refused NotWritable: .*identity\.db can't be written .*DATA_DIR/)]);
});
