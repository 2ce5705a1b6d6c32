import { ANONYMOUS, openCall } from "@petstore/rpc/call";
import { expect, test } from "vitest";
import { openMemory } from "../../packages/store/memory/memory.ts";
import { advanceDeletion } from "./delete-category.ts";
import { CATEGORIES } from "./model.ts";
import { beginDeletion, endDeletion, insert } from "./rules.ts";
import type { CategoryContext } from "./service.ts";

test.each(["DELETED", "ACTIVE"] as const)("a deletion that has ended meanwhile (%s) asks nobody", async (end) => {
  const categories = await openMemory().collection(CATEGORIES);
  await categories.update(1, insert(1, { name: "dogs" }));
  await categories.update(1, beginDeletion(1n, {}));
  await categories.update(1, endDeletion(1, end));
  const asked: string[] = [];
  const pets = { closeCategory: async () => asked.push("close"), openCategory: async () => asked.push("open") };
  const runtime = { clock: () => 0, random: () => 0, maxTimeoutMs: 1_000, principal: ANONYMOUS };
  const call = openCall({ headers: new Headers(), timeoutMs: 1_000 }, runtime);
  const context = { clock: () => 0, failpoint: () => {}, categories, pets } as unknown as CategoryContext;
  await advanceDeletion(context, 1, call);
  expect(asked).toEqual([]);
});
