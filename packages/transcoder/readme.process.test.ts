/** The example of the README is the one in example/, and works. `.ci/transcoder` tries it with the packed package. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePorts } from "../../test/harness/instances.ts";

const root = join(import.meta.dirname, "../..");
const example = join(import.meta.dirname, "example");
const readme = readFileSync(join(import.meta.dirname, "README.md"), "utf8");
const textOf = (name: string) => readFileSync(join(example, name), "utf8");

test.each([
  ["proto/shelf.proto", "proto"],
  ["buf.yaml", "yaml"],
  ["buf.gen.yaml", "yaml"],
  ["service.js", "js"],
  ["server.js", "js"],
  ["shelf.js", "js"],
])("the README shows %s as it is", (name, language) => {
  expect(readme).toContain(`\`\`\`${language}\n${textOf(name)}\`\`\``);
});

test("the README installs the versions that it is tested with", () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const installed = [...readme.matchAll(/ (@?[\w/-]+)@(\d[\d.]*)/g)].map(([, name = "", version]) => [name, version]);
  expect(installed).toHaveLength(7);
  for (const [name = "", version] of installed) expect([name, version]).toEqual([name, dependencies[name]]);
});

// Here packages are found by their names.
const project = mkdtempSync(join(root, "node_modules/.cache/transcoder-"));
afterAll(() => rmSync(project, { recursive: true, force: true }));

test("the example serves what it promises", async () => {
  cpSync(example, project, { recursive: true });
  const packed = join(project, "node_modules/connect-transcoder");
  const bring = (from: string, to: string) => cpSync(from, join(packed, to), { recursive: true });
  bring(join(import.meta.dirname, "proto/transcoder"), "proto/transcoder");
  bring(join(root, "node_modules/@protobufs/google/api"), "third-party/google/api");
  bring(join(root, "node_modules/.cache/protos"), "third-party");
  const PATH = `${join(root, "node_modules/.bin")}:${process.env.PATH}`;
  execFileSync("buf", ["generate"], { cwd: project, env: { ...process.env, PATH } });
  rmSync(join(project, "node_modules"), { recursive: true });

  const port = await freePorts();
  const env = { ...process.env, PORT: `${port}` };
  const server = spawn(process.execPath, ["server.js"], { cwd: project, env, stdio: "inherit" });
  try {
    const check = spawn(process.execPath, ["check.mjs", `http://127.0.0.1:${port}`], {
      cwd: project,
      stdio: "inherit",
    });
    expect(await once(check, "exit")).toEqual([0, null]);
  } finally {
    server.kill();
  }
});
