import { implement } from "@petstore/rpc/server/handlers";
import { OrderFate, OrderInternalService } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { type ListOrdersRequest, OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { createExpiry, removeTombstones, withExpiry } from "../resource/expiry.ts";
import { settling } from "../resource/finish-on-read.ts";
import { accepted, createKeys, givenUp, KEYS, refused } from "../resource/idempotency-keys.ts";
import type { ServiceModule } from "../resource/module.ts";
import { withCaller } from "../resource/on-behalf.ts";
import { readPage } from "../resource/page.ts";
import { storedId } from "../resource/record.ts";
import { removing, sweeping } from "../resource/recovery-worker.ts";
import { drive, fateOf, finish, foreseeRefusal, type OrderContext, type Peers } from "./advance-order.ts";
import { isTombstone, ORDERS, type OrderDoc, type OrderParams, said, shown, toOrder } from "./model.ts";
import { asPlaced, cancel, insert, insertAborted, orderNotFound, refusalError, update } from "./rules.ts";

/** Longest that placing an order may take, in milliseconds: well before the sweeper gives the order up. */
const PLACING_MS = 3_000;

export async function createOrderService(deps: Deps, { inventory }: Peers): Promise<ServiceModule> {
  const { store, clock } = deps;
  const expiry = createExpiry(deps.retention.tombstones, clock);
  const orders = withCaller(withExpiry(await store.collection(ORDERS), isTombstone, expiry));
  const context: OrderContext = { ...deps, orders, inventory };
  const keys = createKeys(
    await store.collection(KEYS),
    {
      nextId: (budget) => store.nextId("order", budget),
      fate: async (id, budget) => fateOf(await orders.get(id, budget)),
      giveUp: async (id, budget) => void (await orders.update(id, insertAborted(id), budget)),
    },
    deps,
  );
  const isListed = (doc: OrderDoc | undefined): doc is OrderDoc => doc?.listed === true;
  const settled = settling<OrderDoc>({ isLeaving, end: (doc, budget) => drive(context, doc, budget) });

  const publicService = implement(OrderService, {
    async listOrders(request, call) {
      const { docs, nextPageToken } = await readPage<OrderDoc>(request, {
        filter: [request.petId, request.complete],
        ids: request.id,
        getMany: (ids) => orders.getMany(ids, call),
        list: (place) => orders.list({ ...place, where: whereOf(request) }, call),
        matches: (doc) => isListed(doc) && matches(request, doc),
        settle: (docs) => settled.many(docs, call),
      });
      return { orders: docs.map(shown), nextPageToken };
    },

    async createOrder({ order, requestId }, call) {
      const placing = { ...call, deadline: Math.min(call.deadline, clock() + PLACING_MS) };
      const params = said.fromMessage(order);
      if (requestId === undefined) {
        const refusal = await foreseeRefusal(context, params, placing);
        if (refusal) throw refusalError(refusal, order);
      }
      return keys.create(placing, { rpc: "CreateOrder", requestId, params }, async (id, params) => {
        // Under a key a refusal is written down too, so that no late attempt places the order after all.
        const isFirst = requestId !== undefined && !(await orders.get(id, placing));
        const refusal = isFirst ? await foreseeRefusal(context, params, placing) : undefined;
        const move = refusal ? insertAborted(id, refusal) : insert(id, params, clock());
        const placed = await orders.update(id, move, placing);
        const doc = isAnswerable(placed, params) ? placed : await drive(context, placed, placing);
        if (fateOf(doc) === "accepted") return accepted({ order: toOrder(id, asPlaced(params), 1) });
        return doc.refusal ? refused(refusalError(doc.refusal, order)) : givenUp;
      });
    },

    async getOrder({ orderId }, call) {
      const id = storedId(orderId);
      const doc = id === undefined ? undefined : await orders.get(id, call);
      const found = await settled.one(doc, call);
      if (!found) throw orderNotFound(orderId);
      return { order: shown(found) };
    },

    async batchGetOrders({ orderId }, call) {
      const ids = orderId.map(storedId).filter((id) => id !== undefined);
      return { orders: (await settled.many(await orders.getMany(ids, call), call)).map(shown) };
    },

    async updateOrder(request, call) {
      const change = said.changeOf(request.order, request.updateMask);
      const id = storedId(request.orderId);
      if (id === undefined) throw orderNotFound(request.orderId);
      const doc = await orders.update(id, update(request.orderId, change, request), call);
      await drive(context, doc, call);
      if (isLeaving(doc)) throw orderNotFound(request.orderId);
      return { order: shown(doc) };
    },

    async deleteOrder({ orderId, ...condition }, call) {
      const id = storedId(orderId);
      if (id === undefined) throw orderNotFound(orderId);
      await drive(context, await orders.update(id, cancel(orderId, condition), call), call);
      return {};
    },
  });

  const internalService = implement(OrderInternalService, {
    async getOrderStates({ orderId }, call) {
      const ids = orderId.map(storedId).filter((id) => id !== undefined);
      const docs = await orders.getMany(ids, call);
      const fates = new Map(docs.map((doc) => [BigInt(doc._id), reservationFate(doc)]));
      return { fates: orderId.map((id) => fates.get(id) ?? OrderFate.UNSPECIFIED) };
    },
  });

  return {
    implementations: [publicService, internalService],
    workers: [
      sweeping(
        {
          name: "order.unfinished",
          everyMs: 2_000,
          list: (batch, budget) => orders.list({ ...batch, where: { todo: true } }, budget),
          work: (doc, budget) => finish(context, doc, budget),
        },
        deps,
      ),
      removing("order.keys", keys.sweep, deps),
      removing("order.tombstones", (limit, budget) => removeTombstones(orders, expiry, limit, budget), deps),
    ],
  };
}

const isLeaving = ({ state }: OrderDoc): boolean => state === "CANCELLING";

/** Accepted before, and what was asked is done: what has become of the order since is not the create's affair. */
const isAnswerable = (doc: OrderDoc, { complete }: OrderParams): boolean =>
  fateOf(doc) === "accepted" && !(complete && doc.state === "COMMITTING");

const reservationFate = (doc: OrderDoc): OrderFate => (isTombstone(doc) ? OrderFate.OVER : OrderFate.LIVE);

function whereOf({ petId, complete: done }: ListOrdersRequest) {
  const listed = true as const;
  // An id beyond 2^53-1 matches nothing, and neither does -1.
  const pet = petId === undefined ? undefined : (storedId(petId) ?? -1);
  if (pet === undefined) return done === undefined ? { listed } : { listed, done };
  return done === undefined ? { listed, petId: pet } : { listed, petId: pet, done };
}

const matches = ({ petId, complete }: ListOrdersRequest, doc: OrderDoc): boolean =>
  (petId === undefined || (doc.petId !== undefined && petId === BigInt(doc.petId))) &&
  (complete === undefined || complete === doc.done);
