import { execFile } from "node:child_process";
import { chmod, chown, lstat, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { parseApiKey } from "../packages/rpc/auth/credentials.ts";
import { createKey, formatKeyFile, noKeys } from "../packages/rpc/auth/key-file.ts";

let file: string;
beforeEach(async () => {
  const directory = await mkdtemp(join(tmpdir(), "keys-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  file = join(directory, "keys.json");
});

/** Runs the command; what it printed, and how it ended. */
async function keys(...args: string[]) {
  const env = { ...process.env, API_KEYS_FILE: file };
  const run = promisify(execFile)(process.execPath, ["scripts/keys.ts", ...args], { env });
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout: stdout.trimEnd(), stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}
const create = (...more: string[]) => keys("create", "--name", "ci", "--scopes", "pets:read,orders:*", ...more);

test("a key is made, listed, rotated and revoked", async () => {
  const { stdout: key, code } = await create("--expires", "90d", "--rate", "600/min");
  expect(code).toBe(0);
  const { id, secret } = parseApiKey(key);
  const text = await readFile(file, "utf8");
  expect(text).not.toContain(secret);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const [entry] = JSON.parse(text).keys;
  expect(entry).toMatchObject({ id, name: "ci", scopes: ["pets:read", "orders:*"], rate: "600/min" });
  const days = (Date.parse(entry.expires) - Date.now()) / 86_400_000;
  expect(Math.round(days)).toBe(90);

  const rotated = await keys("rotate", id);
  expect(parseApiKey(rotated.stdout)).toMatchObject({ id });
  expect(rotated.stdout).not.toBe(key);
  expect((await keys("list")).stdout).toBe(`${id}\tci\tpets:read,orders:*\t${entry.expires}\t600/min`);
  expect(await keys("revoke", id)).toMatchObject({ code: 0, stdout: "" });
  expect((await keys("list")).stdout).toBe("");
});

test("it explains itself, before a file is named", async () => {
  file = "";
  expect(await keys("--help")).toMatchObject({ code: 0, stdout: expect.stringContaining("API_KEYS_FILE") });
});

test("a file that an editor saved with a byte order mark is read, and written without", async () => {
  const { content, id } = createKey(noKeys, { name: "shop", scopes: ["*"], expires: undefined });
  await writeFile(file, `\ufeff${formatKeyFile(content)}`);
  expect((await keys("list")).stdout).toContain(id);
  expect(await keys("revoke", id)).toMatchObject({ code: 0 });
  expect(await readFile(file, "utf8")).toBe(formatKeyFile(noKeys));
});

test.each([
  [["create", "--name", "ci"], "npm run keys -- create"],
  [["create", "--name", "ci", "--scopes", "pets:raed"], 'There is no scope "pets:raed"'],
  [["create", "--name", "ci", "--scopes", "*", "--expires", "soon"], "--expires must be a time"],
  [["create", "--name", "ci", "--scopes", "*", "--rate", "fast"], "--rate must be a rate such as 600/min"],
  [["create", "--name", "ci", "--scopes", "*", "--secret", "x"], "--secret"],
  [["revoke", "0123456789ab"], "no key has this id"],
  [["burn"], "npm run keys -- create"],
])("%j is refused, and changes nothing", async (args, words) => {
  const before = formatKeyFile(createKey(noKeys, { name: "shop", scopes: ["*"], expires: undefined }).content);
  await writeFile(file, before);
  const { code, stderr, stdout } = await keys(...args);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain(words);
  expect(await readFile(file, "utf8")).toBe(before);
});

test("a file that can't be used is left as it is", async () => {
  await writeFile(file, "{");
  const { code, stderr } = await create();
  expect(code).toBe(1);
  expect(stderr).toContain("it is not JSON");
  expect(await readFile(file, "utf8")).toBe("{");
});

test("a file keeps who may read it, and a link stays one", async () => {
  await create();
  await chmod(file, 0o640);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await chown(file, 1000, 1000);
  const { uid, gid } = await stat(file);
  const link = `${file}.link`;
  await symlink(file, link);
  file = link;
  expect((await create()).code).toBe(0);
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  expect(JSON.parse(await readFile(file, "utf8")).keys).toHaveLength(2);
  const now = await stat(file);
  expect([now.uid, now.gid, now.mode & 0o777]).toEqual([uid, gid, 0o640]);
});

test("of commands that run at once none undoes what another did", async () => {
  const made = await Promise.all(Array.from({ length: 3 }, () => create()));
  const ids = made.filter(({ code }) => code === 0).map(({ stdout }) => parseApiKey(stdout).id);
  expect(ids.length).toBeGreaterThan(0);
  for (const { code, stderr } of made) if (code !== 0) expect(stderr).toContain("Another command is changing");
  expect(
    JSON.parse(await readFile(file, "utf8"))
      .keys.map(({ id }: { id: string }) => id)
      .sort(),
  ).toEqual(ids.sort());
});
