/** Processes that may have few files open. */
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { run } from "../packages/runtime/fixtures/run.ts";
import { freePorts } from "../test/harness/instances.ts";

const timeout = 120_000;
const root = join(import.meta.dirname, "..");
const dir = await mkdtemp(join(tmpdir(), "open-files-"));
afterAll(() => rm(dir, { recursive: true }));

/** The prefix of a command that may have so many files open. */
const openFiles = (count: number) => ["sh", "-c", 'ulimit -n "$0" && exec "$@"', `${count}`];

/** Connections that send nothing. Resolves when each was accepted or reset. */
async function connectIdle(port: number, count: number): Promise<void> {
  const sockets: Socket[] = [];
  onTestFinished(() => void sockets.map((socket) => socket.destroy()));
  const one = () =>
    new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1", resolve).on("error", () => resolve());
      sockets.push(socket);
    });
  await Promise.all(Array.from({ length: count }, one));
}

test("callers are served while more connections are idle than files may be open, and one line said so", {
  timeout,
}, async () => {
  const port = await freePorts();
  const env = { PORT_BASE: `${port}`, DATA_DIR: dir, PATH: process.env.PATH ?? "" };
  await using it = run([join(root, "launcher/main.ts")], env, false, openFiles(256));
  await it.printed(/is ready/);
  expect(it.output().match(/^.*ulimit -n.*$/gm)).toEqual([
    expect.stringMatching(/^This process may have 256 files open .*: it takes 96 connections and 96 streams\. /),
  ]);
  await connectIdle(port, 300);
  for (let i = 0; i < 3; i++) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: "close" } });
    expect(answer.status).toBe(200);
  }
});

test("a process that is started alone says it itself", { timeout }, async () => {
  const env = { PORT: "0", INTERNAL_SECRET: "0123456789abcdef0123456789abcdef" };
  await using it = run([join(root, "gateway/main.ts")], env, false, openFiles(256));
  await it.printed(/"level":"warn".*"This process may have 256 files open \(ulimit -n\)/);
  await it.printed(/ready at/);
});

test("a start with next to no files is refused in one line", { timeout }, async () => {
  await using it = run([join(root, "launcher/main.ts")], { DATA_DIR: dir }, false, openFiles(70));
  expect(await it.ended).toBe(1);
  expect(it.output()).toMatch(/^The petstore can't start\. This process may have 70 files open [^\n]*\n$/);
});
