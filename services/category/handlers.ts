/** The RPCs of categories. */

import { create } from "@bufbuild/protobuf";
import type { CallContext } from "@petstore/rpc/call";
import { type Implementation, implement } from "@petstore/rpc/server/handlers";
import {
  type CategoryEvent,
  CategoryEventSchema,
  CategoryService,
  ListCategoriesRequestSchema,
  WatchCategoriesResponseSchema,
} from "#proto/petstore/category/v1/category_service_pb.ts";
import { CategoryInternalService, CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { DomainError } from "../records/errors.ts";
import { accepted } from "../records/idempotency-keys.ts";
import { maxPageSize, readNamedPage, type Source } from "../records/page.ts";
import { isVisible, storedId, storedIds } from "../records/record.ts";
import { createWatch, type EventAttributes, oneOf } from "../records/watch.ts";
import { advanceDeletion } from "./delete-category.ts";
import { type CategoryDoc, type CategoryView, categoryOf, input, toCategory } from "./model.ts";
import { beginDeletion, categoryNotFound, insert, knowDeletion, update } from "./rules.ts";
import type { CategoryContext } from "./service.ts";

/** Pause before an update that met an undecided deletion retries. */
const POLL_INTERVAL_MS = 25;
/** An update that meets an undecided deletion gives up this long before its deadline. */
const MARGIN_MS = 100;
/** Times that one call advances a deletion before it leaves the deletion to the recovery worker. */
const MAX_ATTEMPTS = 3;

export function createCategoryHandlers(context: CategoryContext): Implementation[] {
  const { categories, names, keys, clock, sleep } = context;
  const maxSize = maxPageSize(ListCategoriesRequestSchema);
  const toEvent = (attributes: EventAttributes, id: number, view: CategoryView) =>
    create(CategoryEventSchema, { ...attributes, category: toCategory(id, view, view.version) });
  const watch = createWatch<CategoryDoc, CategoryView, CategoryEvent>(
    { kind: "category", collection: categories, response: WatchCategoriesResponseSchema, toEvent },
    context,
  );

  const listed = (ids: readonly bigint[], callContext: CallContext): Source<CategoryDoc> => ({
    maxSize,
    filter: [],
    ids,
    getMany: (known) => categories.getMany(known, callContext),
    list: (start) => categories.list({ ...start, where: { visible: true } }, callContext),
    matches: isVisible,
  });

  const publicService = implement(CategoryService, {
    async listCategories(request, call) {
      const { docs, nextPageToken } = await readNamedPage(request, listed(request.id, call), names, call);
      return { categories: docs.map(categoryOf), nextPageToken };
    },

    async createCategory({ category, requestId }, call) {
      const params = input.fromMessage(category);
      const creation = { rpc: "CreateCategory", requestId, params, stored: (id: number) => categories.get(id, call) };
      return keys.create(call, creation, async ({ id }, stored) => {
        if (!stored) await categories.update(id, insert(id, params), call);
        return accepted({ category: toCategory(id, params, 1) });
      });
    },

    async getCategory({ categoryId }, call) {
      const id = storedId(categoryId);
      const doc = id === undefined ? undefined : await categories.get(id, call);
      if (!isVisible(doc)) throw categoryNotFound(categoryId);
      return { category: categoryOf(doc) };
    },

    async batchGetCategories({ categoryId }, call) {
      const docs = await categories.getMany(storedIds(categoryId), call);
      return { categories: docs.filter(isVisible).map(categoryOf) };
    },

    async updateCategory(request, call) {
      const id = storedId(request.categoryId);
      if (id === undefined) throw categoryNotFound(request.categoryId);
      const decide = update(request.categoryId, input.changeOf(request.category, request.updateMask), request);
      for (;;) {
        const doc = await categories.update(id, decide, call);
        if (doc !== "deleting") return { category: categoryOf(doc) };
        if (clock() + MARGIN_MS >= call.deadline)
          throw new DomainError("CONCURRENT_UPDATE", "The category is just being deleted. Try again.");
        await advanceDeletion(context, id, call);
        await sleep(POLL_INTERVAL_MS);
      }
    },

    async deleteCategory({ categoryId, ...preconditions }, call) {
      const id = storedId(categoryId);
      if (id === undefined) throw categoryNotFound(categoryId);
      const begin = () => categories.update(id, beginDeletion(categoryId, preconditions), call);
      let { op, joined } = await begin();
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        await advanceDeletion(context, id, call);
        const doc = await categories.get(id, call);
        if (doc?.state === "DELETED") return {};
        if (doc?.state !== "ACTIVE" && !(doc && doc.op > op)) continue;
        if (!joined)
          throw new DomainError("CATEGORY_IN_USE", "Pets belong to the category. Move or delete them first.");
        // The joined deletion may have found pets that left before this call. A deletion that is under way now began
        // after the call.
        ({ op } = await begin());
        joined = false;
      }
      throw new DomainError("UNAVAILABLE", "The deletion could not be finished now. Try again.");
    },

    watchCategories(request, call) {
      const source = (callContext: CallContext) => listed(request.categoryId, callContext);
      return watch(request, { source, matches: oneOf(request.categoryId) }, call);
    },
  });

  const internalService = implement(CategoryInternalService, {
    async getCategoryState({ categoryId, knownOp }, call) {
      const id = storedId(categoryId);
      const look = async (latest: boolean) => {
        let doc = id === undefined ? undefined : await categories.get(id, { ...call, latest });
        if (doc && doc.op < knownOp) doc = await categories.update(doc._id, knowDeletion(Number(knownOp)), call);
        if (doc?.state !== "ACTIVE" && doc?.state !== "DELETING") return undefined;
        return { state: CategoryState[doc.state], op: BigInt(doc.op) };
      };
      // A read may be stale, and Pet refuses a pet whose category is missing. So a miss is confirmed by a read of the
      // latest state.
      return (await look(false)) ?? (await look(true)) ?? { state: CategoryState.DELETED };
    },
  });

  return [publicService, internalService];
}
