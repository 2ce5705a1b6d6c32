/** Changing, completing and cancelling orders. */

import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { type Order, OrderSchema } from "#proto/petstore/order/v1/order_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { type Case, call, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { updateOrder, deleteOrder } = OrderService.method;
const { AVAILABLE, SOLD, PENDING } = PetStatus;

type Init = MessageInitShape<typeof OrderSchema>;
type Given = (shop: Shop) => Promise<Order>;

const open: Given = async (shop) => shop.order({ petId: (await shop.stocked(5)).id, quantity: 2 });
const complete: Given = async (shop) => shop.order({ petId: (await shop.stocked(5)).id, quantity: 2, complete: true });
const free: Given = (shop) => shop.order({ shipDate: { seconds: 0n } });

/** The members of an order as HTTP shows them. */
const members = (order: Init) => {
  const { etag, ...json } = toJson(OrderSchema, create(OrderSchema, order)) as Record<string, unknown>;
  const numbers = ["id", "petId"].filter((name) => name in json).map((name) => [name, Number(json[name])]);
  return { ...json, ...Object.fromEntries(numbers) };
};

const put = (name: string, given: Given, change: Init) => ({
  name: `PUT: ${name}`,
  given,
  http: ({ id }: Order) => ({ method: "PUT", path: `/store/orders/${id}`, body: members(change) }),
  rpc: ({ id = 0n }: Order) => call(updateOrder, { orderId: id, order: change }),
});
const patch = (name: string, given: Given, change: Init, paths: string[]) => ({
  name: `PATCH: ${name}`,
  given,
  http: ({ id }: Order) => ({ method: "PATCH", path: `/store/orders/${id}`, body: members(change) }),
  rpc: ({ id = 0n }: Order) => call(updateOrder, { orderId: id, order: change, updateMask: { paths } }),
});
type Change = ReturnType<typeof put>;

/** The order after the change; members that are not named are unchanged. */
const becomes = ({ name, ...body }: Change, now: Init, etag: string, afterwards?: Case<Order>["afterwards"]): Case =>
  rule(name, {
    ...body,
    answers: ({ $typeName, ...before }) => {
      const order = create(OrderSchema, { ...before, ...now, etag } as Init);
      return {
        http: { status: 200, headers: { etag }, body: members(order) },
        rpc: { message: { order: toJson(OrderSchema, order) } },
      };
    },
    ...(afterwards ? { afterwards } : {}),
  });
const isRefused = ({ name, ...body }: Change, reason: "ORDER_FIXED" | "ORDER_COMPLETE"): Case =>
  rule(name, { ...body, fails: { http: `409 ${reason}`, rpc: `FAILED_PRECONDITION ${reason}` } });

const stock =
  (quantity: number, status: PetStatus): NonNullable<Case<Order>["afterwards"]> =>
  async ({ stockOf }, { petId = 0n }) =>
    expect(await stockOf(petId)).toMatchObject({ quantity, status });

const invalid = (name: string, method: string, body: object, says: string) =>
  rule(`${method}: ${name}`, {
    given: open,
    http: ({ id }) => ({ method, path: `/store/orders/${id}`, body }),
    oneEndpoint: "protobuf messages hold no null",
    fails: { http: "400 VALIDATION_FAILED", says },
  });

const deletion = {
  http: ({ id }: Order) => ({ method: "DELETE", path: `/store/orders/${id}` }),
  rpc: ({ id = 0n }: Order) => call(deleteOrder, { orderId: id }),
};

export const orderChanges = [
  becomes(put("complete: true", open, { complete: true }), { complete: true }, '"2"', stock(3, AVAILABLE)),
  becomes(
    patch("complete: true", open, { complete: true }, ["complete"]),
    { complete: true },
    '"2"',
    stock(3, AVAILABLE),
  ),
  becomes(put("completing again changes nothing", complete, { complete: true }), {}, '"1"', stock(3, AVAILABLE)),
  becomes(
    patch(
      "completing the last unit sells the pet",
      async (shop) => shop.order({ petId: (await shop.pet()).id }),
      { complete: true },
      ["complete"],
    ),
    { complete: true },
    '"2"',
    stock(0, SOLD),
  ),
  becomes(put("absent petId, quantity and complete mean unchanged", open, {}), {}, '"1"'),
  becomes(put("absent complete means unchanged on a complete order", complete, {}), {}, '"1"'),
  becomes(patch("{} and an empty mask change nothing", open, {}, []), {}, '"1"'),
  becomes(put("what is the same is no change", open, { quantity: 2, complete: false }), {}, '"1"'),
  becomes(put("what is the same is no change on a complete order", complete, { quantity: 2 }), {}, '"1"'),
  becomes(put("an absent shipDate is removed", free, {}), { shipDate: undefined }, '"2"'),
  becomes(patch("an absent shipDate stays", free, { complete: true }, ["complete"]), { complete: true }, '"2"'),
  becomes(
    put("the shipDate of a complete order may still change", complete, { shipDate: { seconds: 60n } }),
    { shipDate: { seconds: 60n } } as Init,
    '"2"',
  ),
  rule("PATCH: null removes the shipDate", {
    given: free,
    http: ({ id }) => ({ method: "PATCH", path: `/store/orders/${id}`, body: { shipDate: null } }),
    rpc: ({ id = 0n }) => call(updateOrder, { orderId: id, order: {}, updateMask: { paths: ["ship_date"] } }),
    answers: ({ id }) => ({
      http: { status: 200, body: { id: Number(id), complete: false } },
      rpc: { message: { order: { id: `${id}`, complete: false, etag: '"2"' } } },
    }),
  }),
  isRefused(put("another quantity", open, { quantity: 3 }), "ORDER_FIXED"),
  isRefused(put("another pet", open, { petId: 9007199254740991n }), "ORDER_FIXED"),
  isRefused(patch("another pet", open, { petId: 1n }, ["pet_id"]), "ORDER_FIXED"),
  isRefused(put("a quantity for an order that had none", free, { quantity: 1 }), "ORDER_FIXED"),
  isRefused(patch("a pet for an order that had none", free, { petId: 1n }, ["pet_id"]), "ORDER_FIXED"),
  isRefused(put("open again", complete, { complete: false }), "ORDER_COMPLETE"),
  isRefused(patch("open again", complete, { complete: false }, ["complete"]), "ORDER_COMPLETE"),
  isRefused(
    put("ORDER_COMPLETE goes before ORDER_FIXED", complete, { quantity: 9, complete: false }),
    "ORDER_COMPLETE",
  ),
  isRefused(put("another quantity, and complete at once", open, { quantity: 3, complete: true }), "ORDER_FIXED"),
  invalid("petId null", "PATCH", { petId: null }, "petId"),
  invalid("quantity null", "PATCH", { quantity: null }, "quantity"),
  invalid("complete null", "PATCH", { complete: null }, "complete"),
  invalid("petId null", "PUT", { petId: null }, "petId"),
  invalid("complete null", "PUT", { complete: null }, "complete"),
  invalid("shipDate null", "PUT", { shipDate: null }, "shipDate"),
  rule("PUT: 404 for one that is not there", {
    http: { method: "PUT", path: "/store/orders/9007199254740992", body: { complete: true } },
    rpc: call(updateOrder, { orderId: 9007199254740992n, order: { complete: true } }),
    fails: { http: "404 ORDER_NOT_FOUND", rpc: "NOT_FOUND ORDER_NOT_FOUND" },
  }),
  rule("DELETE: 204, its units return to stock, and it is gone", {
    given: async (shop) => shop.order({ petId: (await shop.stocked(2)).id, quantity: 2 }),
    ...deletion,
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
    afterwards: async (shop, order) => {
      await stock(2, AVAILABLE)(shop, order);
      expect((await shop.orders.batchGetOrders({ orderId: [order.id ?? 0n] })).orders).toEqual([]);
    },
  }),
  rule("DELETE: units of other orders stay where they are", {
    given: async (shop) => {
      const pet = await shop.stocked(3);
      await shop.order({ petId: pet.id, quantity: 3 });
      await shop.inventory.updateInventory({ petId: pet.id, inventory: { quantity: 1 } });
      const second = await shop.order({ petId: pet.id });
      await shop.pets.updatePet({ petId: pet.id, pet: { status: PENDING }, updateMask: { paths: ["status"] } });
      return second;
    },
    ...deletion,
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
    afterwards: stock(1, PENDING),
  }),
  rule("DELETE: an open order without a pet", {
    given: free,
    ...deletion,
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
  }),
  rule("DELETE: 404 the second time", {
    given: async (shop) => {
      const order = await open(shop);
      await shop.orders.deleteOrder({ orderId: order.id ?? 0n });
      return order;
    },
    ...deletion,
    fails: { http: "404 ORDER_NOT_FOUND", rpc: "NOT_FOUND ORDER_NOT_FOUND" },
    afterwards: stock(5, AVAILABLE),
  }),
  rule("DELETE: 409 for a complete order", {
    given: complete,
    ...deletion,
    fails: { http: "409 ORDER_COMPLETE", rpc: "FAILED_PRECONDITION ORDER_COMPLETE" },
  }),
  rule("DELETE: 409 for a complete order without a pet", {
    given: (shop) => shop.order({ complete: true }),
    ...deletion,
    fails: { http: "409 ORDER_COMPLETE", rpc: "FAILED_PRECONDITION ORDER_COMPLETE" },
  }),
];
