import { beforeEach, expect, test } from "vitest";
import { CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { createExpiry, RETENTION, withExpiry } from "#shared/expiry.ts";
import { testClock } from "#shared/fixtures/service.ts";
import { openMemory } from "#shared/store/memory.ts";
import { GATES, type Gates, PETS, type Pets } from "./document.ts";
import { createGatekeeper, type Gatekeeper } from "./gate.ts";
import { insert, refuse } from "./rules.ts";

const CATEGORY = 7;
const DAY_MS = 24 * 3_600_000;
let [time, state]: [ReturnType<typeof testClock>, CategoryState] = [testClock(), CategoryState.DELETING];
let [pets, gates, gatekeeper]: [Pets, Gates, Gatekeeper] = [] as never;
beforeEach(async () => {
  [time, state] = [testClock(), CategoryState.DELETING];
  const { clock, advance } = time;
  const store = openMemory();
  pets = await store.collection(PETS);
  const expiry = createExpiry(RETENTION.tombstones, clock);
  gates = withExpiry(await store.collection(GATES), ({ closed }) => closed, expiry);
  const categories = { getCategoryState: async () => ({ state, op: 1n }) } as never;
  const sleep = async (ms: number) => advance(ms);
  const endDeletion = async () => {};
  const context = { clock, sleep, point: () => {}, retention: RETENTION, pets, gates, categories, endDeletion };
  gatekeeper = createGatekeeper(context);
  await gatekeeper.close(CATEGORY, 1, budget());
});
const budget = () => ({ deadline: time.clock() + 1_000, requestId: "r" });
const sweep = () => gatekeeper.sweep(100, budget());

test("a gate is removed a week after it was closed for a category that is gone", async () => {
  state = CategoryState.DELETED;
  time.advance(7 * DAY_MS);
  expect(await sweep()).toBe(0);
  time.advance(2 * DAY_MS);
  expect(await sweep()).toBe(1);
  expect(await gates.get(CATEGORY)).toBeUndefined();
});

test("a gate stays as long as the deletion is not decided, and when it is open", async () => {
  time.advance(9 * DAY_MS);
  expect(await sweep()).toBe(0);
  await gatekeeper.open(CATEGORY, 1, budget());
  state = CategoryState.DELETED;
  expect(await sweep()).toBe(0);
  expect(await gates.get(CATEGORY)).toMatchObject({ closed: false });
});

test("a gate stays as long as a pet is to find it closed", async () => {
  state = CategoryState.DELETED;
  await pets.update(1, insert(1, { facts: { name: "Rex" }, categoryId: CATEGORY }));
  time.advance(9 * DAY_MS);
  expect(await sweep()).toBe(0);
  await pets.update(1, refuse);
  expect(await sweep()).toBe(1);
});
