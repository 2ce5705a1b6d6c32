/** The RPCs of the inventory. */
import { create } from "@bufbuild/protobuf";
import type { CallContext } from "@petstore/rpc/call";
import { type Implementation, implement } from "@petstore/rpc/server/handlers";
import { toTraceparent } from "@petstore/trace/context";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import {
  type InventoryEvent,
  InventoryEventSchema,
  InventoryService,
  type ListInventoryRequest,
  ListInventoryRequestSchema,
  WatchInventoryResponseSchema,
} from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { DomainError } from "../records/errors.ts";
import { maxPageSize, readPage, type Source } from "../records/page.ts";
import { fromPetStatus, storedId, storedIds, toPetStatus } from "../records/record.ts";
import { createWatch, type EventAttributes, oneOf } from "../records/watch.ts";
import { type InventoryDoc, type InventoryView, input, toInventoryItem } from "./model.ts";
import {
  highestOrder,
  inventoryNotFound,
  isOpen,
  type OperationResult,
  open,
  reserve,
  retire,
  setListing,
  update,
} from "./rules.ts";
import type { InventoryContext } from "./service.ts";

/** What the map of reservations can hold. */
const TAG = /^[\w-]+$/;

/** What a list or a watch filters by. */
type Filters = Pick<ListInventoryRequest, "petId" | "status">;

export function createInventoryHandlers(context: InventoryContext): Implementation[] {
  const { entries, change, commitOrder, releaseOrder } = context;
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
    async open({ petId, listing, knownStatusRev }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      const known = knownStatusRev === undefined ? undefined : Number(knownStatusRev);
      return answer(await change(id, open(id, fromPetStatus(listing), known), "inventory.opened", call));
    },

    async reserve({ petId, orderId, quantity, tag }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id === undefined || order === undefined) return notFound;
      if (!TAG.test(tag)) throw new DomainError("VALIDATION_FAILED", "must be letters and digits", { path: "tag" });
      const decide = reserve(order, quantity, tag, call.trace && toTraceparent(call.trace));
      const { outcome, entry } = await change(id, decide, "inventory.reserved", call);
      const isFenced = outcome === "FENCED" && entry;
      return { outcome: Outcome[outcome], ...(isFenced ? { highestOrderId: BigInt(highestOrder(entry)) } : {}) };
    },

    async commit({ petId, orderId, quantity }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id === undefined || order === undefined) return notFound;
      return { outcome: Outcome[await commitOrder(id, order, quantity, call)] };
    },

    async release({ petId, orderId }, call) {
      const [id, order] = [storedId(petId), storedId(orderId)];
      if (id !== undefined && order !== undefined) await releaseOrder(id, order, call);
      return {};
    },

    async getHighestOrder(_, call) {
      return { orderId: BigInt(await context.highestOrder.get(call)) };
    },

    async setListing({ petId, op, listing, knownStatusRev }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      const decide = setListing(Number(op), fromPetStatus(listing), Number(knownStatusRev));
      const result = await change(id, decide, "inventory.listing-set", call);
      return { ...answer(result), latestOp: latestOp(result) };
    },

    async retire({ petId, op }, call) {
      const id = storedId(petId);
      if (id === undefined) return notFound;
      const result = await change(id, retire(Number(op)), "inventory.retired", call);
      return { outcome: Outcome[result.outcome], latestOp: latestOp(result) };
    },
  });

  return [publicService, internalService];
}

/** An id beyond 2^53-1 was never assigned, so the store need not be read. */
const notFound = { outcome: Outcome.NOT_FOUND };

const answer = ({ outcome, entry }: OperationResult) => ({ outcome: Outcome[outcome], stock: entry && stockOf(entry) });

const latestOp = ({ entry }: OperationResult) => BigInt(entry?.lastOp.op ?? 0);

const stockOf = ({ status, statusRev }: InventoryDoc) => ({
  status: toPetStatus(status),
  statusRev: BigInt(statusRev),
});
