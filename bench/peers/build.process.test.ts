import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { build, buildDir } from "./build.ts";

const name = `test-${process.pid}`;
let sources: string;
beforeEach(() => {
  sources = mkdtempSync(join(tmpdir(), "petstore-build-"));
  writeFileSync(join(sources, "a.txt"), "first");
});
afterEach(() => {
  for (const dir of [sources, buildDir(name)]) rmSync(dir, { recursive: true, force: true });
});

const script = (code: string) => [process.execPath, "-e", code] as const;
const copy = script('fs.copyFileSync("src/a.txt", "built.txt")');

async function buildWith(command: readonly [string, ...string[]]): Promise<number> {
  let ran = 0;
  await build({ name, sources: { src: sources }, commands: [command] }, () => ran++);
  return ran;
}

test("what is built stays until its source changes", async () => {
  expect(await buildWith(copy)).toBe(1);
  expect(await buildWith(copy)).toBe(0);
  writeFileSync(join(sources, "a.txt"), "second");
  expect(await buildWith(copy)).toBe(1);
  expect(readFileSync(join(buildDir(name), "built.txt"), "utf8")).toBe("second");
});

test("a command that fails says what it said, and is run again", async () => {
  const failing = script('console.error("no such thing"); process.exit(3)');
  await expect(buildWith(failing)).rejects.toThrow("no such thing");
  expect(existsSync(join(buildDir(name), "built.txt"))).toBe(false);
  await expect(buildWith(failing)).rejects.toThrow("no such thing");
});

test("a command that isn't there is an error", async () => {
  await expect(buildWith(["/no/such/program"])).rejects.toThrow("/no/such/program");
});
