import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@petstore/runtime/environment";
import { pino } from "pino";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { openApiKeys } from "./api-keys.ts";
import { createKey, formatKeyFile, type KeyFile, noKeys, revokeKey, rotateKey } from "./key-file.ts";

const START = Date.parse("2030-01-01T00:00:00Z");
const ci = createKey(noKeys, { name: "ci", scopes: ["books:read"], expires: new Date(START + 1000) });

let path: string;
let now: number;
let logged: { level: number; msg: string; problem?: string }[];
beforeEach(async () => {
  const directory = await mkdtemp(join(tmpdir(), "api-keys-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  path = join(directory, "keys.json");
  now = START;
  logged = [];
});

/** As the command does: at no moment is there half a file. */
async function write(content: KeyFile): Promise<void> {
  await writeFile(`${path}.new`, formatKeyFile(content));
  await rename(`${path}.new`, path);
}

/** Looks when `reload` is called, or whenever `tick` lets it. */
async function open() {
  let tick = () => {};
  const log = pino({ level: "info" }, { write: (line: string) => logged.push(JSON.parse(line)) });
  const sleep = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      tick = resolve;
      signal?.addEventListener("abort", reject);
    });
  const keys = await openApiKeys(path, { wallClock: () => now, random: () => 0, sleep, log });
  onTestFinished(() => keys[Symbol.asyncDispose]());
  return { ...keys, tick: () => tick() };
}

test("a key may have a rate of its own", async () => {
  const { content, key } = createKey(noKeys, { name: "ci", scopes: ["*"], rate: "9/s;burst=3", expires: undefined });
  await write(content);
  const { verify } = await open();
  expect(verify(key)).toMatchObject({ rate: { requests: 9, windowMs: 1000, burst: 3 } });
});

test("a key is known by its secret, and names its caller and what it was granted", async () => {
  await write(ci.content);
  const { verify } = await open();
  expect(verify(ci.key)).toEqual({ id: `key:${ci.id}`, scopes: new Set(["books:read"]) });
  const other = rotateKey(ci.content, ci.id).key;
  expect(() => verify(other)).toThrow("not known here");
  expect(() => verify(createKey(noKeys, { name: "x", scopes: [], expires: undefined }).key)).toThrow("not known here");
});

test("a key is accepted until its end, and not at it", async () => {
  await write(ci.content);
  const { verify } = await open();
  now = START + 999;
  expect(verify(ci.key)).toBeDefined();
  now = START + 1000;
  expect(() => verify(ci.key)).toThrow("has expired");
});

test("a change of the file counts while the process runs: a new key, another secret, a revoked one", async () => {
  await write(ci.content);
  const { verify, reload } = await open();
  const shop = createKey(ci.content, { name: "shop", scopes: ["*"], expires: undefined });
  await write(shop.content);
  await reload();
  expect(verify(shop.key)).toMatchObject({ id: `key:${shop.id}` });
  const rotated = rotateKey(shop.content, ci.id);
  await write(rotated.content);
  await reload();
  expect(verify(rotated.key)).toEqual({ id: `key:${ci.id}`, scopes: new Set(["books:read"]) });
  expect(() => verify(ci.key)).toThrow("not known here");
  await write(revokeKey(rotated.content, shop.id));
  await reload();
  expect(() => verify(shop.key)).toThrow("not known here");
  expect(logged.map(({ msg }) => msg)).toEqual(Array(3).fill("the API keys were read again"));
});

test("a byte order mark, with which some editors begin a file, changes nothing: neither at the start nor at a revocation", async () => {
  await writeFile(path, `\ufeff${formatKeyFile(ci.content)}`);
  const { verify, reload } = await open();
  expect(verify(ci.key)).toBeDefined();
  await writeFile(path, `\ufeff${formatKeyFile(revokeKey(ci.content, ci.id))}`);
  await reload();
  expect(() => verify(ci.key)).toThrow("not known here");
});

test("the file is looked at by itself", async () => {
  await write(ci.content);
  const { verify, tick } = await open();
  await write(noKeys);
  const linesAfterATick = () => {
    tick();
    return logged.length;
  };
  await expect.poll(linesAfterATick).toBe(1);
  expect(() => verify(ci.key)).toThrow("not known here");
});

test("a file that breaks, or goes, leaves the last good one, and is told once", async () => {
  await write(ci.content);
  const { verify, reload } = await open();
  await writeFile(path, '{"keys": [');
  for (let i = 0; i < 3; i++) await reload();
  expect(verify(ci.key)).toBeDefined();
  await rm(path);
  for (let i = 0; i < 3; i++) await reload();
  expect(verify(ci.key)).toBeDefined();
  await write(ci.content);
  await reload();
  expect(logged.map(({ msg, problem }) => problem ?? msg)).toEqual([
    "it is not JSON",
    "there is no such file",
    "the API keys were read again",
  ]);
});

test("without a file that can be read nothing starts", async () => {
  await expect(open()).rejects.toThrow(ConfigError);
  await expect(open()).rejects.toThrow("API_KEYS_FILE can't be used: there is no such file.");
  await writeFile(path, "{}");
  await expect(open()).rejects.toThrow("keys");
});
