/** What a start tells people to try works: each command as it is shown, on an empty store and after the demo. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../packages/runtime/fixtures/run.ts";
import { freePorts } from "../test/harness/instances.ts";

const timeout = 240_000;
const root = join(import.meta.dirname, "..");
const exec = promisify(execFile);

const directory = async () => {
  const path = await mkdtemp(join(tmpdir(), "trials-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
};

/** Starts the petstore, and tries what it shows. */
async function tryAll(settings: Record<string, string>, credential: Record<string, string> = {}): Promise<void> {
  const PORT_BASE = `${await freePorts()}`;
  const env = { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "" };
  await using petstore = run([join(import.meta.dirname, "main.ts"), "--single-process"], { ...settings, PORT_BASE });
  await petstore.printed(/is ready/);
  const shown = petstore.output().split("Try in another terminal")[1] ?? "";
  const [demo = "", ...others] = [...shown.matchAll(/^ {4}(.*)$/gm)].map(([, command]) => command ?? "");
  expect(demo).toContain("npm run demo");
  expect(others).toHaveLength(2);

  const tryOthers = async () => {
    const outputs: string[] = [];
    for (const command of others)
      outputs.push((await exec("sh", ["-c", command], { cwd: root, env: { ...env, ...credential } })).stdout);
    expect(outputs).toEqual(["Rex is available\nRex is pending\nRex is sold\n", expect.stringMatching(/^\[.*"Rex"/)]);
  };
  await tryOthers();
  const filled = `${demo}${demo.includes(" -- ") ? "" : " --"} --changes 5`; // so that it ends
  await exec("sh", ["-c", filled], { cwd: root, env: { ...env, ...credential } });
  await tryOthers();
}

test("without credentials", { timeout }, async () => {
  await tryAll({ DATA_DIR: await directory() });
});

test("with a key, and over TLS", { timeout }, async () => {
  const dir = await directory();
  const keys = { AUTH_MODE: "keys", API_KEYS_FILE: join(dir, "keys.json") };
  const script = (name: string) => join(root, "scripts", name);
  const made = await exec(process.execPath, [script("keys.ts"), "create", "--name", "me", "--scopes", "*"], {
    env: keys,
  });
  await exec(process.execPath, [script("certs.ts"), "--dir", dir]);
  const tls = { TLS_CERT: join(dir, "cert.pem"), TLS_KEY: join(dir, "key.pem"), INTERNAL_TLS_CA: join(dir, "ca.pem") };
  const [credential = ""] = /psk_\S+/.exec(made.stdout) ?? [];
  await tryAll({ ...keys, ...tls, DATA_DIR: join(dir, "data") }, { CREDENTIAL: credential });
});
