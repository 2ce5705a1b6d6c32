import type { Doc } from "@petstore/store/port";
import { expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { CategoryInternalService, CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import type { PeersOf } from "../create.ts";
import { withReads } from "../records/fixtures/reads.ts";
import { startTestService } from "../records/fixtures/service.ts";
import { createCategoryService } from "./service.ts";

test("a category is gone only by a read that is the latest, for a pet is refused by that", async () => {
  const read: (boolean | undefined)[] = [];
  let outdated: Doc | undefined;
  const service = await startTestService((deps) => {
    const store = withReads(deps.store, (_, { latest }) => {
      read.push(latest);
      return latest ? undefined : outdated;
    });
    return createCategoryService({ ...deps, store }, {} as PeersOf<"category">);
  });
  const { category } = await service.client(CategoryService).createCategory({ category: { name: "dogs" } });
  const stateOf = async (categoryId: bigint | undefined) => {
    read.length = 0;
    return (await service.client(CategoryInternalService).getCategoryState({ categoryId: categoryId ?? 0n })).state;
  };
  expect([await stateOf(category?.id), read]).toEqual([CategoryState.ACTIVE, [false]]);
  outdated = { _id: 1, rev: 1, state: "DELETED" } as Doc;
  expect([await stateOf(category?.id), read]).toEqual([CategoryState.ACTIVE, [false, true]]);
  outdated = undefined;
  expect([await stateOf(99n), read]).toEqual([CategoryState.DELETED, [false, true]]);
});
