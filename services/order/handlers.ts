/** The RPCs of orders. */

import { create } from "@bufbuild/protobuf";
import type { CallContext } from "@petstore/rpc/call";
import { type Implementation, implement } from "@petstore/rpc/server/handlers";
import {
  OrderInternalService,
  OrderState,
  type Reservation,
} from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import {
  ListOrdersRequestSchema,
  type OrderEvent,
  OrderEventSchema,
  OrderService,
  WatchOrdersResponseSchema,
} from "#proto/petstore/order/v1/order_service_pb.ts";
import { maxPageSize, readPage, type Source } from "../records/page.ts";
import { isVisible, storedId, storedIds } from "../records/record.ts";
import { createWatch, type EventAttributes, oneOf } from "../records/watch.ts";
import { input, type OrderDoc, type OrderView, orderOf, toOrder } from "./model.ts";
import { asPlaced, cancel, insertAborted, orderNotFound, update } from "./rules.ts";
import { commitUnits, createKnownOrders, placeOrder, releaseUnits } from "./saga.ts";
import type { OrderContext } from "./service.ts";

/** Time limit for placing an order, in milliseconds: well below the age at which Inventory asks about its reservation. */
const PLACING_TIMEOUT_MS = 3_000;

/** What a list or a watch filters by. */
interface Filters {
  readonly id: readonly bigint[];
  readonly petId: readonly bigint[];
  readonly complete?: boolean | undefined;
}

export function createOrderHandlers(context: OrderContext): Implementation[] {
  const { orders, keys, clock } = context;
  const knownOrders = createKnownOrders(context);
  const maxSize = maxPageSize(ListOrdersRequestSchema);
  const toEvent = (attributes: EventAttributes, id: number, view: OrderView) =>
    create(OrderEventSchema, { ...attributes, order: toOrder(id, view, view.version) });
  const watch = createWatch<OrderDoc, OrderView, OrderEvent>(
    { kind: "order", collection: orders, response: WatchOrdersResponseSchema, toEvent },
    context,
  );

  const listed = (filters: Filters, callContext: CallContext): Source<OrderDoc> => ({
    maxSize,
    filter: [filters.petId.length === 0 ? undefined : filters.petId.map(String).sort().join(), filters.complete],
    ids: filters.id,
    getMany: (ids) => orders.getMany(ids, callContext),
    list: (start) => orders.list({ ...start, where: whereOf(filters) }, callContext),
    matches: (doc) => isVisible(doc) && matches(filters, doc),
  });

  const publicService = implement(OrderService, {
    async listOrders(request, call) {
      const filters = { ...request, petId: request.petId === undefined ? [] : [request.petId] };
      const { docs, nextPageToken } = await readPage(request, listed(filters, call));
      return { orders: docs.map(orderOf), nextPageToken };
    },

    async createOrder({ order: sent, requestId }, call) {
      const placing = { ...call, deadline: Math.min(call.deadline, clock() + PLACING_TIMEOUT_MS) };
      const params = input.fromMessage(sent);
      const stored = (id: number) => orders.get(id, placing);
      const creation = { rpc: "CreateOrder", requestId, params, stored, above: await knownOrders() };
      const id = await keys.create(placing, creation, (attempt, stored) =>
        placeOrder(context, attempt, { sent, params, stored }, placing),
      );
      return { order: toOrder(id, asPlaced(params), 1) };
    },

    async getOrder({ orderId }, call) {
      const id = storedId(orderId);
      const doc = id === undefined ? undefined : await orders.get(id, call);
      if (!isVisible(doc)) throw orderNotFound(orderId);
      return { order: orderOf(doc) };
    },

    async batchGetOrders({ orderId }, call) {
      const docs = await orders.getMany(storedIds(orderId), call);
      return { orders: docs.filter(isVisible).map(orderOf) };
    },

    async updateOrder(request, call) {
      const change = input.changeOf(request.order, request.updateMask);
      const id = storedId(request.orderId);
      if (id === undefined) throw orderNotFound(request.orderId);
      const doc = await orders.update(id, update(request.orderId, change, request), call);
      if (change.complete) await commitUnits(context, { ...doc, id }, call);
      return { order: orderOf(doc) };
    },

    async deleteOrder({ orderId, ...condition }, call) {
      const id = storedId(orderId);
      if (id === undefined) throw orderNotFound(orderId);
      const cancelled = await orders.update(id, cancel(orderId, condition), call);
      await releaseUnits(context, { ...cancelled, id }, call);
      return {};
    },

    watchOrders(request, call) {
      const filters = { id: [], petId: request.petId, complete: request.complete };
      const isAsked = oneOf(request.petId);
      const filter = {
        source: (callContext: CallContext) => listed(filters, callContext),
        matches: (_: number, { petId, complete = false }: Partial<OrderView>) =>
          isAsked(petId) && (request.complete === undefined || request.complete === complete),
      };
      return watch(request, filter, call);
    },
  });

  const internalService = implement(OrderInternalService, {
    async resolveReservations({ reservations }, call) {
      const docs = await orders.getMany(storedIds(reservations.map(({ orderId }) => orderId)), call);
      const found = new Map(docs.map((doc) => [BigInt(doc._id), doc]));
      const stateFor = async (reservation: Reservation): Promise<OrderState> => {
        const id = Number(reservation.orderId);
        // Whoever stores first under an id wins: an attempt that still runs finds the order aborted.
        const doc = found.get(reservation.orderId) ?? (await orders.update(id, insertAborted(id), call));
        return stateOf(doc, reservation);
      };
      const results = await Promise.allSettled(reservations.map(stateFor));
      const [failed] = results.filter((result) => result.status === "rejected");
      const states = results.map((result) => (result.status === "fulfilled" ? result.value : OrderState.UNSPECIFIED));
      // One order that can't be read must not keep the units of the others.
      if (failed && states.every((state) => state === OrderState.UNSPECIFIED)) throw failed.reason;
      return { states };
    },
  });

  return [publicService, internalService];
}

/** A tombstone has neither pet nor tag. A restored store may give an id once more: then they are those of another order. */
function stateOf(doc: OrderDoc, { petId, tag }: Reservation): OrderState {
  if (doc.petId !== Number(petId) || doc.tag !== tag) return OrderState.ENDED;
  return doc.state === "COMPLETE" ? OrderState.COMPLETE : OrderState.OPEN;
}

function whereOf({ petId, complete: completed }: Filters) {
  const visible = true as const;
  // An id beyond 2^53-1 matches nothing; -1, which no pet has, stands for it.
  const pets = petId.map((id) => storedId(id) ?? -1);
  if (pets.length === 0) return completed === undefined ? { visible } : { visible, completed };
  return completed === undefined ? { visible, petId: pets } : { visible, petId: pets, completed };
}

const matches = ({ petId, complete }: Filters, doc: Pick<OrderDoc, "petId" | "completed">): boolean =>
  oneOf(petId)(doc.petId) && (complete === undefined || complete === doc.completed);
