/** The RPCs of orders. */
import { create } from "@bufbuild/protobuf";
import type { CallContext } from "@petstore/rpc/call";
import { type Implementation, implement } from "@petstore/rpc/server/handlers";
import { OrderInternalService, OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import {
  ListOrdersRequestSchema,
  type OrderEvent,
  OrderEventSchema,
  OrderService,
  WatchOrdersResponseSchema,
} from "#proto/petstore/order/v1/order_service_pb.ts";
import { type FinishOnRead, finishOnRead } from "../resource/finish-on-read.ts";
import { abandoned, accepted, refused } from "../resource/idempotency-keys.ts";
import { maxPageSize, readPage, type Source } from "../resource/page.ts";
import { storedId, storedIds } from "../resource/record.ts";
import { createWatch, type EventAttributes, oneOf } from "../resource/watch.ts";
import { advanceOrder } from "./advance-order.ts";
import { type OrderContext, resolutionOf } from "./context.ts";
import { input, isTombstone, type OrderDoc, type OrderParams, type OrderView, orderOf, toOrder } from "./model.ts";
import { checkRefusal, writeOrder } from "./place-order.ts";
import { asPlaced, cancel, orderNotFound, refusalError, update } from "./rules.ts";

/** Time limit for placing an order, in milliseconds: well below the time after which the recovery worker aborts it. */
const PLACING_TIMEOUT_MS = 3_000;

/** What a list or a watch filters by. */
interface Filters {
  readonly id: readonly bigint[];
  readonly petId: readonly bigint[];
  readonly complete?: boolean | undefined;
}

export function createOrderHandlers(context: OrderContext): Implementation[] {
  const { orders, keys, clock } = context;
  const maxSize = maxPageSize(ListOrdersRequestSchema);
  const finishing = finishOnRead<OrderDoc>(
    { isUnderWay: isCancelling, finish: (doc, callContext) => advanceOrder(context, doc, callContext) },
    context,
  );
  const toEvent = (attributes: EventAttributes, id: number, view: OrderView) =>
    create(OrderEventSchema, { ...attributes, order: toOrder(id, view, view.version) });
  const watch = createWatch<OrderDoc, OrderView, OrderEvent>(
    { kind: "order", collection: orders, response: WatchOrdersResponseSchema, toEvent },
    context,
  );

  const listed = (filters: Filters, callContext: CallContext, finish: FinishOnRead<OrderDoc>): Source<OrderDoc> => ({
    maxSize,
    filter: [filters.petId.length === 0 ? undefined : filters.petId.map(String).sort().join(), filters.complete],
    ids: filters.id,
    getMany: (ids) => orders.getMany(ids, callContext),
    list: (start) => orders.list({ ...start, where: whereOf(filters) }, callContext),
    matches: (doc) => doc.visible === true && matches(filters, doc),
    finish,
  });

  const publicService = implement(OrderService, {
    async listOrders(request, call) {
      const filters = { ...request, petId: request.petId === undefined ? [] : [request.petId] };
      const { docs, nextPageToken } = await readPage(request, listed(filters, call, finishing.read(call)));
      return { orders: docs.map(orderOf), nextPageToken };
    },

    async createOrder({ order, requestId }, call) {
      const placing = { ...call, deadline: Math.min(call.deadline, clock() + PLACING_TIMEOUT_MS) };
      const params = input.fromMessage(order);
      const isKeyed = requestId !== undefined;
      if (!isKeyed) {
        const refusal = await checkRefusal(context, params, placing);
        if (refusal) throw refusalError(refusal, order);
      }
      return keys.create(placing, { rpc: "CreateOrder", requestId, params }, async (id, params) => {
        const written = await writeOrder(context, { id, params, isKeyed }, placing);
        const doc = isAnswerable(written, params) ? written : await advanceOrder(context, written, placing);
        if (resolutionOf(doc) === "accepted") return accepted({ order: toOrder(id, asPlaced(params), 1) });
        return doc.refusal ? refused(refusalError(doc.refusal, order)) : abandoned;
      });
    },

    async getOrder({ orderId }, call) {
      const id = storedId(orderId);
      const doc = id === undefined ? undefined : await orders.get(id, call);
      const [found] = await finishing.read(call).asked(doc ? [doc] : []);
      if (!found) throw orderNotFound(orderId);
      return { order: orderOf(found) };
    },

    async batchGetOrders({ orderId }, call) {
      const docs = await orders.getMany(storedIds(orderId), call);
      return { orders: (await finishing.read(call).asked(docs)).map(orderOf) };
    },

    async updateOrder(request, call) {
      const change = input.changeOf(request.order, request.updateMask);
      const id = storedId(request.orderId);
      if (id === undefined) throw orderNotFound(request.orderId);
      const doc = await orders.update(id, update(request.orderId, change, request), call);
      await advanceOrder(context, doc, call);
      if (isCancelling(doc)) throw orderNotFound(request.orderId);
      return { order: orderOf(doc) };
    },

    async deleteOrder({ orderId, ...condition }, call) {
      const id = storedId(orderId);
      if (id === undefined) throw orderNotFound(orderId);
      await advanceOrder(context, await orders.update(id, cancel(orderId, condition), call), call);
      return {};
    },

    watchOrders(request, call) {
      const filters = { id: [], petId: request.petId, complete: request.complete };
      const isAsked = oneOf(request.petId);
      const filter = {
        source: (callContext: CallContext) => listed(filters, callContext, finishing.snapshot(callContext)),
        matches: (_: number, { petId, complete = false }: Partial<OrderView>) =>
          isAsked(petId) && (request.complete === undefined || request.complete === complete),
      };
      return watch(request, filter, call);
    },
  });

  const internalService = implement(OrderInternalService, {
    async getOrderStates({ orderId }, call) {
      const docs = await orders.getMany(storedIds(orderId), call);
      const states = new Map(docs.map((doc) => [BigInt(doc._id), stateOf(doc)]));
      return { states: orderId.map((id) => states.get(id) ?? OrderState.UNSPECIFIED) };
    },
  });

  return [publicService, internalService];
}

const isCancelling = ({ state }: OrderDoc): boolean => state === "CANCELLING";

/**
 * Whether the order was accepted and all that its create asked for is done. Later changes of the order do not affect the
 * answer.
 */
const isAnswerable = (doc: OrderDoc, { complete }: OrderParams): boolean =>
  resolutionOf(doc) === "accepted" && !(complete && doc.state === "COMMITTING");

const stateOf = (doc: OrderDoc): OrderState => (isTombstone(doc) ? OrderState.ENDED : OrderState.LIVE);

function whereOf({ petId, complete: completed }: Filters) {
  const visible = true as const;
  // An id beyond 2^53-1 matches nothing; -1, which no pet has, stands for it.
  const pets = petId.map((id) => storedId(id) ?? -1);
  if (pets.length === 0) return completed === undefined ? { visible } : { visible, completed };
  return completed === undefined ? { visible, petId: pets } : { visible, petId: pets, completed };
}

const matches = ({ petId, complete }: Filters, doc: Pick<OrderDoc, "petId" | "completed">): boolean =>
  oneOf(petId)(doc.petId) && (complete === undefined || complete === doc.completed);
