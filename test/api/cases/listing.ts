/** How a pet is listed, and the status that follows from it. */
import { expect } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { updatePet } = PetService.method;
const { AVAILABLE, PENDING, SOLD } = PetStatus;
const words = { [AVAILABLE]: "available", [PENDING]: "pending", [SOLD]: "sold" } as const;
type Listing = keyof typeof words;

interface Subject {
  readonly id: bigint;
  readonly categoryId: bigint;
}

/** Writes the status of a pet by PATCH. */
const lists = (name: string, given: (shop: Shop) => Promise<Subject>, status: Listing) => ({
  name,
  given,
  http: ({ id }: Subject) => ({ method: "PATCH", path: `/pets/${id}`, body: { status: words[status] } }),
  rpc: ({ id }: Subject) => call(updatePet, { petId: id, pet: { status }, updateMask: { paths: ["status"] } }),
});

/** The answer has the status that follows from the write, and the inventory entry has it at once. */
const shows = ({ name, ...body }: ReturnType<typeof lists>, status: Listing, quantity: number): Case =>
  rule(name, {
    ...body,
    answers: ({ id, categoryId }) => ({
      http: {
        status: 200,
        body: { id: Number(id), name: "Rex", categoryId: Number(categoryId), status: words[status] },
      },
      rpc: {
        message: {
          pet: {
            id: `${id}`,
            name: "Rex",
            categoryId: `${categoryId}`,
            status: `PET_STATUS_${words[status].toUpperCase()}`,
            etag: expect.any(String),
          },
        },
      },
    }),
    afterwards: async ({ stockOf }, { id }) => expect(await stockOf(id)).toMatchObject({ quantity, status }),
  });

const noStock = ({ name, ...body }: ReturnType<typeof lists>): Case =>
  rule(name, { ...body, fails: { http: "409 INSUFFICIENT_STOCK", rpc: "FAILED_PRECONDITION INSUFFICIENT_STOCK" } });

const empty = (shop: Shop) => shop.stocked(0);
const heldByOrder = async (shop: Shop) => {
  const pet = await shop.pet();
  await shop.order({ petId: pet.id });
  return pet;
};

export const listing = [
  shows(
    lists("pending is on hold", (shop) => shop.pet(), PENDING),
    PENDING,
    1,
  ),
  shows(
    lists("sold is sold elsewhere; the listing never changes the quantity", (shop) => shop.pet(), SOLD),
    SOLD,
    1,
  ),
  shows(
    lists("back to available with stock", (shop) => shop.pet({ status: PENDING }), AVAILABLE),
    AVAILABLE,
    1,
  ),
  noStock(lists("available needs stock: none", empty, AVAILABLE)),
  noStock(
    lists("available needs stock: none since it was created as sold", (shop) => shop.pet({ status: SOLD }), AVAILABLE),
  ),
  noStock(lists("available needs stock: units held by open orders do not count", heldByOrder, AVAILABLE)),
  shows(lists("the stricter: no stock and no orders is sold, whatever the listing", empty, PENDING), SOLD, 0),
  shows(
    lists("the stricter: no stock with open orders is pending, listed as pending too", heldByOrder, PENDING),
    PENDING,
    0,
  ),
  shows(lists("the stricter: listed as sold goes before pending", heldByOrder, SOLD), SOLD, 0),
  rule("PUT: to available without stock", {
    given: empty,
    http: ({ id, categoryId }) => ({
      method: "PUT",
      path: `/pets/${id}`,
      body: { name: "Max", categoryId: Number(categoryId), status: "available" },
    }),
    rpc: ({ id, categoryId }) => call(updatePet, { petId: id, pet: { name: "Max", categoryId, status: AVAILABLE } }),
    fails: { http: "409 INSUFFICIENT_STOCK", rpc: "FAILED_PRECONDITION INSUFFICIENT_STOCK" },
  }),
  rule("stock set above 0 relists a pet listed as sold", {
    given: (shop) => shop.pet({ status: SOLD }),
    http: ({ id }) => ({ method: "PUT", path: `/store/inventory/${id}`, body: { quantity: 10 } }),
    rpc: ({ id }) => call(InventoryService.method.updateInventory, { petId: id, inventory: { quantity: 10 } }),
    answers: ({ id }) => ({
      http: { status: 200, body: { petId: Number(id), quantity: 10, status: "available" } },
      rpc: {
        message: {
          item: { petId: `${id}`, quantity: 10, status: "PET_STATUS_AVAILABLE", etag: expect.any(String) },
        },
      },
    }),
  }),
  rule("stock set above 0 leaves a pet on hold", {
    given: (shop) => shop.pet({ status: PENDING }),
    http: ({ id }) => ({ method: "PATCH", path: `/store/inventory/${id}`, body: { quantity: 10 } }),
    rpc: ({ id }) =>
      call(InventoryService.method.updateInventory, {
        petId: id,
        inventory: { quantity: 10 },
        updateMask: { paths: ["quantity"] },
      }),
    answers: ({ id }) => ({
      http: { status: 200, body: { petId: Number(id), quantity: 10, status: "pending" } },
      rpc: {
        message: { item: { petId: `${id}`, quantity: 10, status: "PET_STATUS_PENDING", etag: expect.any(String) } },
      },
    }),
  }),
  rule("a cancelled order never relists", {
    given: async (shop) => {
      const pet = await shop.pet();
      const order = await shop.order({ petId: pet.id });
      await shop.pets.updatePet({ petId: pet.id, pet: { status: SOLD }, updateMask: { paths: ["status"] } });
      return { ...pet, order };
    },
    http: ({ order }) => ({ method: "DELETE", path: `/store/orders/${order.id}` }),
    rpc: ({ order }) => call(OrderService.method.deleteOrder, { orderId: order.id ?? 0n }),
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
    afterwards: async ({ stockOf }, { id }) => expect(await stockOf(id)).toMatchObject({ quantity: 1, status: SOLD }),
  }),
];
