/** What somebody sees who has not installed everything, or not with npm. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "..");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };

/** What an npm script prints where nothing but the sources is there. */
function runScript(name: string): { readonly status: number | null; readonly printed: string } {
  const dir = mkdtempSync(join(tmpdir(), "install-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const path of ["package.json", "scripts", "launcher"])
    cpSync(join(root, path), join(dir, path), { recursive: true });
  mkdirSync(join(dir, "node_modules"));
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", name], { cwd: dir, encoding: "utf8" });
  return { status, printed: stdout + stderr };
}

test("without generated code a start says how to make it", { timeout: 60_000 }, () => {
  expect(runScript("start")).toEqual({
    status: 1,
    printed:
      "The generated code is missing, as it is after `npm ci --ignore-scripts`: make it with `npm run prepare`.\n",
  });
});

test("an installation that left out the packages of this repository, such as pnpm's, says how to install", {
  timeout: 60_000,
}, () => {
  expect(runScript("prepare")).toEqual({
    status: 1,
    printed: "The packages of this repository are not in node_modules: install it with npm, by `npm ci`.\n",
  });
});

test("every npm script that needs generated code looks for it first", () => {
  const run = Object.entries(scripts).filter(([name, command]) => name !== "generate" && / \S+\.ts\b/.test(command));
  expect(run.length).toBeGreaterThan(5);
  for (const [, command] of run) expect(command).toMatch(/^node (--import \.\/)?scripts\/require-install\.mjs /);
});
