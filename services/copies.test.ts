import { join } from "node:path";
import type { StoreFile } from "@petstore/store/port";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { directoryForEach } from "../packages/store/fixtures/directory.ts";
import type { AdminRoutes } from "../processes/admin.ts";
import { addCopies, HOLD_MS, LEASE_MS } from "./copies.ts";
import { openProof, type Proof } from "./proof.ts";

const state = { kept: 0, held: 0 };
const file = (path: string, log: number): StoreFile => ({
  path,
  keep(kept) {
    state.kept += kept ? 1 : -1;
  },
  hold() {
    state.held++;
    return log;
  },
  release() {
    state.held = 0;
  },
});
const directory = directoryForEach();
const routes: AdminRoutes = new Map();
let proof: Proof;
const put = (body: string, query = proof.query) => routes.get("PUT /store/copy")?.(body, new URLSearchParams(query));
const ask = async (step: string, token?: unknown) =>
  (await put(JSON.stringify({ step, token }))) as {
    status: number;
    body: Record<string, unknown>;
  };
const begin = async () => (await ask("begin")).body.token;

beforeEach(() => {
  vi.useFakeTimers();
  Object.assign(state, { kept: 0, held: 0 });
  proof = openProof(directory.path);
  addCopies(routes, [file(join(directory.path, "a"), 1), file(join(directory.path, "b"), 2)]);
});
afterEach(() => {
  proof[Symbol.dispose]();
  vi.useRealTimers();
});

test("nobody begins a copy who can't prove that they may read the files", async () => {
  expect(await put('{"step":"begin"}', "")).toMatchObject({ status: 403 });
  expect(state.kept).toBe(0);
});

test("files are kept from the beginning to the end, and all commits are held and let go together", async () => {
  expect(await ask("begin")).toMatchObject({
    status: 200,
    body: { files: [expect.stringMatching(/a$/), expect.stringMatching(/b$/)], token: expect.any(String) },
  });
  const { message } = (await ask("begin")).body;
  expect(message).toMatch(/being made already/);
  expect(state).toEqual({ kept: 2, held: 0 });
});

test("the moment is over by itself, and whoever comes too late learns that", async () => {
  const token = await begin();
  expect((await ask("hold", token)).body).toEqual({ logs: [1, 2] });
  expect(state.held).toBe(2);
  expect((await ask("release", token)).body).toEqual({ wasHeld: true });
  expect(state.held).toBe(0);
  await ask("hold", token);
  vi.advanceTimersByTime(HOLD_MS);
  expect(state.held).toBe(0);
  expect((await ask("release", token)).body).toEqual({ wasHeld: false });
  await ask("hold", token);
  await ask("end", token);
  expect(state).toEqual({ kept: 0, held: 0 });
});

test("a copy that nobody goes on with is over, and void", async () => {
  const token = await begin();
  vi.advanceTimersByTime(LEASE_MS - 1);
  expect(await ask("go on", token)).toMatchObject({ status: 200 });
  vi.advanceTimersByTime(LEASE_MS - 1);
  expect(state.kept).toBe(2);
  vi.advanceTimersByTime(1);
  expect(state.kept).toBe(0);
  expect(await ask("hold", token)).toMatchObject({ status: 409, body: { message: expect.stringMatching(/void/) } });
  const next = await begin();
  expect(await ask("end", token)).toMatchObject({ status: 409 });
  expect(state.kept).toBe(2);
  expect(await ask("end", next)).toMatchObject({ status: 200 });
});

test("what is not understood is refused", async () => {
  const token = await begin();
  await expect(ask("jump", token)).rejects.toThrow(/must be begin, go on, hold, release or end/);
  expect(() => put("{")).toThrow(/Send JSON/);
});
