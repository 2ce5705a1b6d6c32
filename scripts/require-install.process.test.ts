/** What somebody sees who has not installed everything, or not with npm. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "..");
const { scripts, engines: ownEngines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
};
const missing = "The packages that petstore needs are not installed, or not by npm: run `npm ci` first.\n";

/** What an npm script prints where nothing but the sources and these packages are there. */
function runScript(name: string, packages: readonly string[] = []) {
  const dir = mkdtempSync(join(tmpdir(), "install-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const path of ["package.json", "scripts", "launcher"])
    cpSync(join(root, path), join(dir, path), { recursive: true });
  for (const path of packages) mkdirSync(join(dir, "node_modules", path), { recursive: true });
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", name], { cwd: dir, encoding: "utf8" });
  return { status, printed: stdout + stderr };
}

test.each(["start", "demo", "generate"])(
  "in a fresh clone `npm run %s` says what to do first",
  {
    timeout: 60_000,
  },
  (name) => {
    expect(runScript(name)).toEqual({ status: 1, printed: missing });
  },
);

test("without generated code a start says how to make it", { timeout: 60_000 }, () => {
  expect(runScript("start", ["connect-transcoder"])).toEqual({
    status: 1,
    printed:
      "The generated code is missing, as it is after `npm ci --ignore-scripts`: make it with `npm run prepare`.\n",
  });
});

test("an installation that left out the packages of this repository, such as pnpm's, says how to install", {
  timeout: 60_000,
}, () => {
  expect(runScript("prepare", ["fastify"])).toEqual({ status: 1, printed: missing });
});

test("the packages are for the versions of Node that `engines` names", () => {
  const { engines } = JSON.parse(readFileSync(join(root, "node_modules/rolldown/package.json"), "utf8"));
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  expect([ownEngines, packages[""].engines]).toEqual([{ node: "^20.19.0 || >=22.12.0" }, ownEngines]);
  expect(engines.node, "of what is left out by another Node, and needed").toBe(ownEngines.node);
});

test.each([
  ["18.20.8", 1],
  ["20.10.0", 1],
  ["20.19.0", 0],
  ["21.7.3", 1],
  ["22.6.0", 1],
  ["22.12.0", 0],
  ["23.0.0", 0],
  ["26.10.0", 0],
])("npm on Node %s: an installation ends with %i", (version, status) => {
  const step = scripts.prepare?.split(" && ")[0] ?? "";
  const env = {
    PATH: process.env.PATH,
    npm_config_user_agent: `npm/10.8.2 node/v${version} linux x64 workspaces/false`,
  };
  const { stderr, ...ended } = spawnSync("sh", ["-c", step], { cwd: root, encoding: "utf8", env });
  expect(ended.status).toBe(status);
  expect(stderr).toMatch(status === 0 ? /^$/ : `petstore can't be installed with Node ${version}: `);
  expect(stderr.split("\n")).toHaveLength(status + 1);
});

test("every npm script that needs generated code looks for it first", () => {
  const run = Object.entries(scripts).filter(([name, command]) => name !== "generate" && / \S+\.ts\b/.test(command));
  expect(run.length).toBeGreaterThan(5);
  for (const [, command] of run) expect(command).toMatch(/^node (--import \.\/)?scripts\/require-install\.mjs /);
});
