/** Stock, and how it follows pets and orders. */
import { expect } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { type Case, call, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { getInventory, updateInventory } = InventoryService.method;

interface Entry {
  readonly id: bigint;
}

const sets = (name: string, given: (shop: Shop) => Promise<Entry>, quantity: number) => ({
  name: `PUT: ${name}`,
  given,
  http: ({ id }: Entry) => ({ method: "PUT", path: `/store/inventory/${id}`, body: { quantity } }),
  rpc: ({ id }: Entry) => call(updateInventory, { petId: id, inventory: { quantity } }),
});
const shows = ({ name, ...body }: ReturnType<typeof sets>, quantity: number, status: string): Case =>
  rule(name, {
    ...body,
    answers: ({ id }) => ({
      http: {
        status: 200,
        headers: { etag: expect.stringMatching(/^"\d+"$/) },
        body: { petId: Number(id), quantity, status },
      },
      rpc: {
        message: {
          item: {
            petId: `${id}`,
            quantity,
            status: `PET_STATUS_${status.toUpperCase()}`,
            etag: expect.stringMatching(/^"\d+"$/),
          },
        },
      },
    }),
  });
const isInvalid = ({ name, ...body }: ReturnType<typeof sets>): Case =>
  rule(name, {
    ...body,
    fails: { http: "400 VALIDATION_FAILED", rpc: "INVALID_ARGUMENT VALIDATION_FAILED", says: "quantity" },
  });

const held = async (shop: Shop) => {
  const pet = await shop.stocked(5);
  await shop.order({ petId: pet.id, quantity: 5 });
  return pet;
};
const MOST = 2 ** 31 - 1;

export const inventory = [
  rule("creating a pet opens its entry with one unit", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "GET", path: `/store/inventory/${id}` }),
    rpc: ({ id }) => call(getInventory, { petId: id }),
    answers: ({ id }) => ({
      http: {
        status: 200,
        headers: { etag: '"1"' },
        body: { petId: Number(id), quantity: 1, status: "available" },
      },
      rpc: { message: { item: { petId: `${id}`, quantity: 1, status: "PET_STATUS_AVAILABLE", etag: '"1"' } } },
    }),
  }),
  rule("GET: 404 for a pet that is not there", {
    http: { method: "GET", path: "/store/inventory/9007199254740992" },
    rpc: call(getInventory, { petId: 9007199254740992n }),
    fails: { http: "404 INVENTORY_NOT_FOUND", rpc: "NOT_FOUND INVENTORY_NOT_FOUND" },
  }),
  rule("PUT: 404 for a pet that is not there", {
    http: { method: "PUT", path: "/store/inventory/0", body: { quantity: 1 } },
    rpc: call(updateInventory, { petId: 0n, inventory: { quantity: 1 } }),
    fails: { http: "404 INVENTORY_NOT_FOUND", rpc: "NOT_FOUND INVENTORY_NOT_FOUND" },
  }),
  shows(
    sets("the new count", (shop) => shop.pet(), 10),
    10,
    "available",
  ),
  shows(
    sets("0 without orders is sold", (shop) => shop.pet(), 0),
    0,
    "sold",
  ),
  shows(sets("0 with open orders is pending", held, 0), 0, "pending"),
  shows(sets("open orders hold units beside it", held, 7), 7, "available"),
  shows(
    sets("the most there can be", (shop) => shop.pet(), MOST),
    MOST,
    "available",
  ),
  shows(sets("the most there can be beside open orders", held, MOST - 5), MOST - 5, "available"),
  shows(
    sets(
      "the same count relists a pet listed as sold, too",
      async (shop) => {
        const pet = await shop.pet();
        await shop.pets.updatePet({
          petId: pet.id,
          pet: { status: PetStatus.SOLD },
          updateMask: { paths: ["status"] },
        });
        return pet;
      },
      1,
    ),
    1,
    "available",
  ),
  isInvalid(sets("what would exceed 2^31-1 with units in open orders", held, MOST - 4)),
  isInvalid(sets("less than 0", (shop) => shop.pet(), -1)),
  rule("PUT: more than 2^31-1", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "PUT", path: `/store/inventory/${id}`, body: { quantity: 2147483648 } }),
    oneEndpoint: "an int32 can't hold it",
    fails: { http: "400 VALIDATION_FAILED", says: "quantity: must be from 0 to 2147483647" },
  }),
  rule("PUT: the limit with open orders is judged after the precondition", {
    given: held,
    http: ({ id }) => ({
      method: "PUT",
      path: `/store/inventory/${id}`,
      headers: { "if-match": '"0"' },
      body: { quantity: MOST },
    }),
    rpc: ({ id }) => call(updateInventory, { petId: id, inventory: { quantity: MOST }, etag: '"0"' }),
    fails: { http: "412 ETAG_MISMATCH", rpc: "ABORTED ETAG_MISMATCH" },
  }),
  rule("PUT: quantity is required", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "PUT", path: `/store/inventory/${id}`, body: {} }),
    rpc: ({ id }) => call(updateInventory, { petId: id, inventory: {} }),
    fails: { http: "400 VALIDATION_FAILED", rpc: "INVALID_ARGUMENT VALIDATION_FAILED", says: "quantity" },
  }),
  rule("PATCH: null for quantity", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "PATCH", path: `/store/inventory/${id}`, body: { quantity: null } }),
    rpc: ({ id }) => call(updateInventory, { petId: id, inventory: {}, updateMask: { paths: ["quantity"] } }),
    fails: { http: "400 VALIDATION_FAILED", rpc: "INVALID_ARGUMENT VALIDATION_FAILED", says: "quantity" },
  }),
  rule("PATCH: {} changes nothing, and does not relist", {
    given: async (shop) => {
      const pet = await shop.pet();
      await shop.pets.updatePet({ petId: pet.id, pet: { status: PetStatus.SOLD }, updateMask: { paths: ["status"] } });
      return shop.stockOf(pet.id);
    },
    http: ({ petId }) => ({ method: "PATCH", path: `/store/inventory/${petId}`, body: {} }),
    rpc: ({ petId }) => call(updateInventory, { petId, inventory: { quantity: 9 }, updateMask: { paths: [] } }),
    answers: ({ petId, etag }) => ({
      http: { status: 200, headers: { etag }, body: { petId: Number(petId), quantity: 1, status: "sold" } },
      rpc: { message: { item: { petId: `${petId}`, quantity: 1, status: "PET_STATUS_SOLD", etag } } },
    }),
  }),
  rule("POST: entries come and go with their pets", {
    http: { method: "POST", path: "/store/inventory", body: { petId: 1, quantity: 1 } },
    oneEndpoint: "there is no such RPC",
    fails: { http: "405 METHOD_NOT_ALLOWED", headers: { allow: "GET, HEAD, OPTIONS" } },
  }),
];
