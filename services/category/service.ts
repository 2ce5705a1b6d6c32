import type { Budget } from "@petstore/rpc/call";
import { implement } from "@petstore/rpc/server/handlers";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { CategoryInternalService, CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { DomainError } from "../resource/errors.ts";
import { createExpiry, removeTombstones, withExpiry } from "../resource/expiry.ts";
import { accepted, createKeys, type Fate, givenUp, KEYS } from "../resource/idempotency-keys.ts";
import type { ServiceModule } from "../resource/module.ts";
import { withCaller } from "../resource/on-behalf.ts";
import { readPage } from "../resource/page.ts";
import { storedId } from "../resource/record.ts";
import { removing, sweeping } from "../resource/recovery-worker.ts";
import { driveDeletion, type Peers } from "./delete-category.ts";
import { CATEGORIES, type CategoryDoc, isTombstone, said, shown, toCategory } from "./model.ts";
import { beginDeletion, categoryNotFound, giveUp, insert, update } from "./rules.ts";

/** How long a write that meets a deletion under way pauses between two looks, and gives up before its deadline. */
const LOOK_MS = 25;
const MARGIN_MS = 100;
/** How often a deletion looks how it ended. */
const ROUNDS = 3;

export async function createCategoryService(deps: Deps, peers: Peers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const categories = withCaller(withExpiry(await store.collection(CATEGORIES), isTombstone, expiry));
  const keys = createKeys(
    await store.collection(KEYS),
    {
      nextId: (budget) => store.nextId("category", budget),
      fate: async (id, budget) => fateOf(await categories.get(id, budget)),
      giveUp: (id, budget) => categories.update(id, giveUp(id), budget),
    },
    deps,
  );
  const drive = (id: number, budget: Budget) => driveDeletion({ ...deps, ...peers, categories }, id, budget);
  const isListed = (doc: CategoryDoc | undefined): doc is CategoryDoc => doc?.listed === true;

  const publicService = implement(CategoryService, {
    async listCategories(request, call) {
      const { docs, nextPageToken } = await readPage<CategoryDoc>(request, {
        filter: [],
        ids: request.id,
        getMany: (ids) => categories.getMany(ids, call),
        list: (place) => categories.list({ ...place, where: { listed: true } }, call),
        matches: isListed,
      });
      return { categories: docs.map(shown), nextPageToken };
    },

    async createCategory({ category, requestId }, call) {
      const params = said.fromMessage(category);
      return keys.create(call, { rpc: "CreateCategory", requestId, params }, async (id, params) => {
        const doc = await categories.update(id, insert(id, params), call);
        return doc.state === "VOID" ? givenUp : accepted({ category: toCategory(id, params, 1) });
      });
    },

    async getCategory({ categoryId }, call) {
      const id = storedId(categoryId);
      const doc = id === undefined ? undefined : await categories.get(id, call);
      if (!isListed(doc)) throw categoryNotFound(categoryId);
      return { category: shown(doc) };
    },

    async batchGetCategories({ categoryId }, call) {
      const ids = categoryId.map(storedId).filter((id) => id !== undefined);
      return { categories: (await categories.getMany(ids, call)).filter(isListed).map(shown) };
    },

    async updateCategory(request, call) {
      const id = storedId(request.categoryId);
      if (id === undefined) throw categoryNotFound(request.categoryId);
      const decide = update(request.categoryId, said.changeOf(request.category, request.updateMask), request);
      while (deps.clock() + MARGIN_MS < call.deadline) {
        const doc = await categories.update(id, decide, call);
        if (doc !== "busy") return { category: shown(doc) };
        await drive(id, call);
        await deps.sleep(LOOK_MS);
      }
      throw new DomainError("CONCURRENT_UPDATE", "The category is just being deleted. Try again.");
    },

    async deleteCategory({ categoryId, ...condition }, call) {
      const id = storedId(categoryId);
      if (id === undefined) throw categoryNotFound(categoryId);
      const op = await categories.update(id, beginDeletion(categoryId, condition), call);
      for (let round = 0; round < ROUNDS; round++) {
        await drive(id, call);
        const doc = await categories.get(id, call);
        if (doc?.state === "DELETED") return {};
        if (doc?.state === "ACTIVE" || (doc && doc.op > op))
          throw new DomainError("CATEGORY_IN_USE", "Pets belong to the category. Move or delete them first.");
      }
      throw new DomainError("UNAVAILABLE", "The deletion could not be finished now. Try again.");
    },
  });

  const internalService = implement(CategoryInternalService, {
    async getCategoryState({ categoryId }, call) {
      const id = storedId(categoryId);
      const doc = id === undefined ? undefined : await categories.get(id, call);
      if (doc?.state === "ACTIVE") return { state: CategoryState.ACTIVE, op: BigInt(doc.op) };
      if (doc?.state === "DELETING") return { state: CategoryState.DELETING, op: BigInt(doc.op) };
      return { state: CategoryState.DELETED };
    },
  });

  return {
    implementations: [publicService, internalService],
    workers: [
      sweeping(
        {
          name: "category.deletions",
          everyMs: 2_000,
          list: (batch, budget) => categories.list({ ...batch, where: { todo: true } }, budget),
          work: ({ _id }, budget) => drive(_id, budget),
        },
        deps,
      ),
      removing("category.keys", keys.sweep, deps),
      removing("category.tombstones", (limit, budget) => removeTombstones(categories, expiry, limit, budget), deps),
    ],
  };
}

function fateOf(doc: CategoryDoc | undefined): Fate {
  if (!doc) return "missing";
  return doc.state === "VOID" ? "given up" : "accepted";
}
