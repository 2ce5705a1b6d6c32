import { Corrupt, put } from "@petstore/store/port";
import { beforeEach, expect, test } from "vitest";
import { CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { Membership } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { createExpiry, withExpiry } from "../records/expiry.ts";
import { testClock } from "../records/fixtures/service.ts";
import { RETENTION } from "../records/retention.ts";
import { createDeletionGuard, type DeletionGuard } from "./deletion-guard.ts";
import { DELETION_GUARDS, type DeletionGuards, PETS, type Pets } from "./model.ts";
import { abort, insert } from "./rules.ts";

const CATEGORY = 7;
const DAY_MS = 24 * 3_600_000;
const OTHER = 8;
let [time, state]: [ReturnType<typeof testClock>, CategoryState] = [testClock(), CategoryState.DELETING];
let ofOther: CategoryState | undefined;
let ofCategory: (() => CategoryState) | undefined;
let [pets, guards, deletionGuard]: [Pets, DeletionGuards, DeletionGuard] = [] as never;
beforeEach(async () => {
  [time, state, ofOther, ofCategory] = [testClock(), CategoryState.DELETING, undefined, undefined];
  const { clock, advance } = time;
  const store = openMemory();
  pets = await store.collection(PETS);
  const expiry = createExpiry(RETENTION.tombstones, clock);
  guards = withExpiry(await store.collection(DELETION_GUARDS), ({ closed }) => closed, expiry);
  const stateOf = (id: bigint) => (Number(id) === OTHER ? ofOther : ofCategory?.()) || state;
  const categories = {
    getCategoryState: async ({ categoryId }: { categoryId: bigint }) => ({ state: stateOf(categoryId), op: 1n }),
  } as never;
  const sleep = async (ms: number) => advance(ms);
  const finishDeletion = async () => {};
  const context = { clock, sleep, failpoint: () => {}, retention: RETENTION, pets, guards, categories, finishDeletion };
  deletionGuard = createDeletionGuard(context);
  await deletionGuard.close(CATEGORY, 1, callContext());
});
const callContext = () => ({
  deadline: time.clock() + 1_000,
  requestId: "r",
  caller: "ann",
  progress: { hasBegun: false },
});
const removeExpired = (limit = 100) => deletionGuard.removeExpired(limit, callContext());

test("a guard is removed a week after it was closed for a category that is deleted", async () => {
  state = CategoryState.DELETED;
  time.advance(7 * DAY_MS);
  expect(await removeExpired()).toBe(0);
  time.advance(2 * DAY_MS);
  expect(await removeExpired()).toBe(1);
  expect(await guards.get(CATEGORY)).toBeUndefined();
});

test("a guard stays as long as the deletion is undecided, and when it is open", async () => {
  time.advance(9 * DAY_MS);
  expect(await removeExpired()).toBe(0);
  await deletionGuard.open(CATEGORY, 1, callContext());
  state = CategoryState.DELETED;
  expect(await removeExpired()).toBe(0);
  expect(await guards.get(CATEGORY)).toMatchObject({ closed: false });
});

test("a guard stays as long as a pet must find it closed", async () => {
  state = CategoryState.DELETED;
  await pets.update(1, insert(1, { facts: { name: "Rex" }, categoryId: CATEGORY }), callContext());
  time.advance(9 * DAY_MS);
  expect(await removeExpired()).toBe(0);
  await pets.update(1, abort, callContext());
  expect(await removeExpired()).toBe(1);
});

test("guards that a deletion left closed are opened, and don't keep others from being removed", async () => {
  [state, ofOther] = [CategoryState.ACTIVE, CategoryState.DELETED];
  await deletionGuard.close(OTHER, 1, callContext());
  time.advance(9 * DAY_MS);
  await removeExpired(1);
  await removeExpired(1);
  expect(await guards.get(CATEGORY)).toMatchObject({ closed: false });
  expect(await guards.get(OTHER)).toBeUndefined();
});

test("a category that was seen before its guard was removed is asked for again", async () => {
  ofOther = CategoryState.ACTIVE;
  expect(await deletionGuard.check(OTHER, callContext())).toBe("open");
  await deletionGuard.close(OTHER, 1, callContext());
  ofOther = CategoryState.DELETED;
  time.advance(9 * DAY_MS);
  expect(await removeExpired()).toBe(1);
  expect(await guards.get(OTHER)).toBeUndefined();
  expect(await deletionGuard.check(OTHER, callContext())).toBe("deleted");
});

test("a pet that can't be read counts as a member", async () => {
  expect(await deletionGuard.close(OTHER, 1, callContext())).toEqual({ membership: Membership.NONE });
  await pets.update(1, insert(1, { facts: { name: "Rex" }, categoryId: OTHER }), callContext());
  await pets.update(1, (pet) => put({ ...pet, op: "none" } as never, undefined), callContext());
  await expect(pets.get(1)).rejects.toThrow(Corrupt);
  expect(await deletionGuard.close(OTHER, 2, callContext())).toEqual({ membership: Membership.SOME });
});

test("whoever meets a deletion that is undecided waits for its end", async () => {
  const until = time.clock() + 500;
  ofCategory = () => (time.clock() < until ? CategoryState.DELETING : CategoryState.ACTIVE);
  expect(await deletionGuard.check(CATEGORY, callContext())).toBe("open");
  expect(time.clock()).toBeGreaterThanOrEqual(until);
});
