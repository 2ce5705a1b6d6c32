/** What the command does when the processes of a petstore do not stand still at once, or end. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { serviceNames } from "../processes/names.ts";
import { copyLive } from "./live.ts";
import { fileOf } from "./places.ts";

let dir = "";
const files = () => serviceNames.map((service) => join(dir, fileOf(service)));
/** What was asked for, and the answers that are not the usual ones. */
const asked: string[] = [];
const answers: Record<string, (() => { status?: number; body: object }) | undefined> = {};
const usual: Record<string, () => object> = {
  begin: () => ({ token: "t", files: files() }),
  hold: () => ({ logs: [3, 0, 1, 5] }),
  release: () => ({ wasHeld: true }),
};
const server = createServer(async (request, response) => {
  const { step } = (await json(request)) as { step: string };
  asked.push(step);
  const { status = 200, body } = answers[step]?.() ?? { body: usual[step]?.() ?? {} };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "petstore-live-"));
  mkdirSync(join(dir, "to"));
  for (const file of files()) {
    writeFileSync(file, `the file ${file}`);
    writeFileSync(`${file}-wal`, "its log");
  }
  asked.length = 0;
  for (const step of Object.keys(answers)) delete answers[step];
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(dir, { recursive: true });
});
const copy = () => copyLive(dir, join(dir, "to"), { ADMIN_PORT: `${(server.address() as AddressInfo).port}` });

test("files are copied whole, and logs up to where they were at the instant", async () => {
  await copy();
  const copied = (name: string) => readFileSync(join(dir, "to", name), "utf8");
  for (const service of serviceNames) expect(copied(fileOf(service))).toBe(`the file ${join(dir, fileOf(service))}`);
  expect([copied("pet.db-wal"), copied("inventory.db-wal")]).toEqual(["its", "its l"]);
  expect(readdirSync(join(dir, "to"))).not.toContain("category.db-wal");
  expect(asked.slice(0, 4)).toEqual(["begin", "hold", "release", "end"]);
});

test("who was held for too short a time is asked again", async () => {
  let times = 0;
  answers.release = () => ({ body: { wasHeld: ++times > 3 } });
  await copy();
  expect(asked.filter((step) => step === "hold")).toHaveLength(4);
});

test("processes are told to go on while bytes are copied, and not when nothing moves", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  let times = 0;
  answers.release = () => {
    vi.advanceTimersByTime(10_000);
    return { body: { wasHeld: ++times > 3 } };
  };
  await copy();
  expect(asked.filter((step) => step === "go on")).toHaveLength(1);
});

test("what keeps a copy from beginning is told, also when its end can't be", async () => {
  rmSync(join(dir, "pet.db"));
  answers.end = () => ({ status: 409, body: { message: "This copy is over." } });
  await expect(copy()).rejects.toThrow(/ENOENT/);
});

test("a copy that a process knows nothing of any more is void, and ended everywhere", async () => {
  answers.end = () => ({ status: 409, body: { message: "This copy is over." } });
  await expect(copy()).rejects.toThrow(/This copy is over/);
});

test("a petstore with other files is left in peace", async () => {
  mkdirSync(join(dir, "other"));
  const others = files().map((file) => file.replace(dir, join(dir, "other")));
  for (const file of others) writeFileSync(file, "");
  answers.begin = () => ({ body: { token: "t", files: others } });
  await expect(copy()).rejects.toThrow(/not by the petstore that the settings name/);
  expect(asked).toEqual(["begin", "end"]);
});

test("what has begun already is not disturbed", async () => {
  answers.begin = () => ({ status: 409, body: { message: "A copy is being made already" } });
  await expect(copy()).rejects.toThrow(/being made already/);
  expect(asked).toEqual(["begin"]);
});
