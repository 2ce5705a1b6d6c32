import { beforeEach, expect, test } from "vitest";
import { CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { createExpiry, RETENTION, withExpiry } from "../resource/expiry.ts";
import { testClock } from "../resource/fixtures/service.ts";
import { createGatekeeper, type Gatekeeper } from "./deletion-guard.ts";
import { GATES, type Gates, PETS, type Pets } from "./model.ts";
import { insert, refuse } from "./rules.ts";

const CATEGORY = 7;
const DAY_MS = 24 * 3_600_000;
const OTHER = 8;
let [time, state]: [ReturnType<typeof testClock>, CategoryState] = [testClock(), CategoryState.DELETING];
let ofOther: CategoryState | undefined;
let [pets, gates, gatekeeper]: [Pets, Gates, Gatekeeper] = [] as never;
beforeEach(async () => {
  [time, state, ofOther] = [testClock(), CategoryState.DELETING, undefined];
  const { clock, advance } = time;
  const store = openMemory();
  pets = await store.collection(PETS);
  const expiry = createExpiry(RETENTION.tombstones, clock);
  gates = withExpiry(await store.collection(GATES), ({ closed }) => closed, expiry);
  const stateOf = (id: bigint) => (Number(id) === OTHER && ofOther) || state;
  const categories = {
    getCategoryState: async ({ categoryId }: { categoryId: bigint }) => ({ state: stateOf(categoryId), op: 1n }),
  } as never;
  const sleep = async (ms: number) => advance(ms);
  const endDeletion = async () => {};
  const context = { clock, sleep, point: () => {}, retention: RETENTION, pets, gates, categories, endDeletion };
  gatekeeper = createGatekeeper(context);
  await gatekeeper.close(CATEGORY, 1, budget());
});
const budget = () => ({ deadline: time.clock() + 1_000, requestId: "r", caller: "ann" });
const sweep = (limit = 100) => gatekeeper.sweep(limit, budget());

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
  await pets.update(1, insert(1, { facts: { name: "Rex" }, categoryId: CATEGORY }), budget());
  time.advance(9 * DAY_MS);
  expect(await sweep()).toBe(0);
  await pets.update(1, refuse, budget());
  expect(await sweep()).toBe(1);
});

test("gates that a deletion left closed are opened, and don't keep others from being removed", async () => {
  [state, ofOther] = [CategoryState.ACTIVE, CategoryState.DELETED];
  await gatekeeper.close(OTHER, 1, budget());
  time.advance(9 * DAY_MS);
  await sweep(1);
  await sweep(1);
  expect(await gates.get(CATEGORY)).toMatchObject({ closed: false });
  expect(await gates.get(OTHER)).toBeUndefined();
});

test("what was seen before the clock was set back is asked again", async () => {
  ofOther = CategoryState.ACTIVE;
  expect(await gatekeeper.admit(OTHER, budget())).toBe("go");
  await gatekeeper.close(OTHER, 1, budget());
  ofOther = CategoryState.DELETED;
  time.advance(9 * DAY_MS);
  expect(await sweep()).toBe(1);
  time.advance(-9 * DAY_MS);
  expect(await gates.get(OTHER)).toBeUndefined();
  expect(await gatekeeper.admit(OTHER, budget())).toBe("gone");
});
