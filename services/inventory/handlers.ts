/** The RPCs of the inventory. */
import { create } from "@bufbuild/protobuf";
import type { CallContext } from "@petstore/rpc/call";
import { type Implementation, implement } from "@petstore/rpc/server/handlers";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import {
  type InventoryEvent,
  InventoryEventSchema,
  InventoryService,
  type ListInventoryRequest,
  ListInventoryRequestSchema,
  WatchInventoryResponseSchema,
} from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { maxPageSize, readPage, type Source } from "../resource/page.ts";
import { fromPetStatus, storedId, storedIds, toPetStatus } from "../resource/record.ts";
import { createWatch, type EventAttributes, oneOf } from "../resource/watch.ts";
import type { InventoryContext } from "./context.ts";
import { type InventoryDoc, type InventoryView, input, toInventoryItem } from "./model.ts";
import {
  commit,
  inventoryNotFound,
  isOpen,
  type OperationResult,
  open,
  refusalOf,
  reserve,
  retire,
  setListing,
  update,
} from "./rules.ts";

/** What a list or a watch filters by. */
type Filters = Pick<ListInventoryRequest, "petId" | "status">;

export function createInventoryHandlers(context: InventoryContext): Implementation[] {
  const { entries, change, releaseOrder } = context;
  const maxSize = maxPageSize(ListInventoryRequestSchema);
  const toEvent = (attributes: EventAttributes, _id: number, view: InventoryView) =>
    create(InventoryEventSchema, { ...attributes, item: toInventoryItem({ ...view, _id }) });
  const watch = createWatch<InventoryDoc, InventoryView, InventoryEvent>(
    { kind: "inventory", collection: entries, response: WatchInventoryResponseSchema, toEvent },
    context,
  );

  function listed(filters: Filters, callContext: CallContext): Source<InventoryDoc> {
    const status = filters.status.map(fromPetStatus);
    const where = status.length === 0 ? { visible: true as const } : { visible: true as const, status };
    return {
      maxSize,
      filter: [[...status].sort()],
      ids: filters.petId,
      getMany: (ids) => entries.getMany(ids, callContext),
      list: (start) => entries.list({ ...start, where }, callContext),
      matches: (doc) => isOpen(doc) && (status.length === 0 || status.includes(doc.status)),
    };
  }

  const publicService = implement(InventoryService, {
    async listInventory(request, call) {
      const { docs, nextPageToken } = await readPage(request, listed(request, call));
      return { items: docs.map(toInventoryItem), nextPageToken };
    },

    async getInventory({ petId }, call) {
      const id = storedId(petId);
      const doc = id === undefined ? undefined : await entries.get(id, call);
      if (!isOpen(doc)) throw inventoryNotFound(petId);
      return { item: toInventoryItem(doc) };
    },

    async batchGetInventory({ petId }, call) {
      const docs = await entries.getMany(storedIds(petId), call);
      return { items: docs.filter(isOpen).map(toInventoryItem) };
    },

    async updateInventory({ petId, inventory, updateMask, ...preconditions }, call) {
      const id = storedId(petId);
      if (id === undefined) throw inventoryNotFound(petId);
      const decide = update(petId, input.changeOf(inventory, updateMask), preconditions);
      const { entry } = await change(id, decide, "inventory.quantity-set", call);
      return { item: toInventoryItem(entry) };
    },

    watchInventory(request, call) {
      const filters = { petId: request.petId, status: [] };
      const source = (callContext: CallContext) => listed(filters, callContext);
      return watch(request, { source, matches: oneOf(request.petId) }, call);
    },
  });

  const internalService = implement(InventoryInternalService, {
    async open({ petId, listing }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      return answer(await change(id, open(id, fromPetStatus(listing)), "inventory.opened", call));
    },

    async checkReserve({ petId, quantity }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      const look = async (latest: boolean) => refusalOf(await entries.get(id, { ...call, latest }), quantity);
      // A read may be stale, and no write follows that would detect it. So a refusal is confirmed by a read of the latest
      // state.
      const refusal = (await look(false)) && (await look(true));
      return { outcome: Outcome[refusal ?? "OK"] };
    },

    async reserve({ petId, orderId, quantity }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id === undefined || order === undefined) return notFound;
      const { outcome } = await change(id, reserve(order, quantity), "inventory.reserved", call);
      return { outcome: Outcome[outcome] };
    },

    async commit({ petId, orderId }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id !== undefined && order !== undefined) await change(id, commit(order), "inventory.committed", call);
      return {};
    },

    async release({ petId, orderId }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id !== undefined && order !== undefined) await releaseOrder(id, order, call);
      return {};
    },

    async setListing({ petId, op, listing }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      return answer(await change(id, setListing(Number(op), fromPetStatus(listing)), "inventory.listing-set", call));
    },

    async retire({ petId, op }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      const { outcome } = await change(id, retire(Number(op)), "inventory.retired", call);
      return { outcome: Outcome[outcome] };
    },
  });

  return [publicService, internalService];
}

/** An id beyond 2^53-1 was never assigned, so the store need not be read. */
const notFound = { outcome: Outcome.NOT_FOUND };

const answer = ({ outcome, entry }: OperationResult) => ({ outcome: Outcome[outcome], stock: entry && stockOf(entry) });

const stockOf = ({ status, statusRev }: InventoryDoc) => ({
  status: toPetStatus(status),
  statusRev: BigInt(statusRev),
});
