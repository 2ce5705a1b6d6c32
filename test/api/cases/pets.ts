/** Pets. */
import { expect } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { call, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { createPet, getPet, updatePet, deletePet } = PetService.method;
const { AVAILABLE, PENDING, SOLD } = PetStatus;

/** A pet whose only unit an open order holds. */
const ordered = async (shop: Shop) => {
  const pet = await shop.pet();
  const order = await shop.order({ petId: pet.id });
  return { ...pet, order };
};

/** A pet created with this status has this status, and its inventory entry has this many units. */
const created = (word: string, status: PetStatus, quantity: number) =>
  rule(`POST: created as ${word}, it has ${quantity} in stock`, {
    given: (shop: Shop) => shop.category(),
    http: ({ id }) => ({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: Number(id), status: word } }),
    rpc: ({ id }) => call(createPet, { pet: { name: "Rex", categoryId: id, status } }),
    answers: ({ id }) => ({
      http: { status: 201, body: { id: expect.any(Number), name: "Rex", categoryId: Number(id), status: word } },
      rpc: {
        message: {
          pet: {
            id: expect.any(String),
            name: "Rex",
            categoryId: `${id}`,
            status: `PET_STATUS_${word.toUpperCase()}`,
            etag: '"1"',
          },
        },
      },
    }),
    afterwards: async ({ pets, stockOf }, { id }) => {
      const [pet] = (await pets.listPets({ categoryId: id })).pets;
      expect(await stockOf(pet?.id ?? 0n)).toMatchObject({ quantity, status });
    },
  });

export const pets = [
  created("available", AVAILABLE, 1),
  created("pending", PENDING, 1),
  created("sold", SOLD, 0),
  rule("POST: 201 with Location and ETag; a pet that was given no status is available", {
    given: (shop) => shop.category(),
    http: ({ id }) => ({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: Number(id) } }),
    rpc: ({ id }) => call(createPet, { pet: { name: "Rex", categoryId: id } }),
    answers: ({ id }) => ({
      http: {
        status: 201,
        headers: { location: expect.stringMatching(/^\/pets\/[1-9]\d*$/), etag: '"1"', deprecation: null },
        body: { id: expect.any(Number), name: "Rex", categoryId: Number(id), status: "available" },
      },
      rpc: {
        message: {
          pet: {
            id: expect.any(String),
            name: "Rex",
            categoryId: `${id}`,
            status: "PET_STATUS_AVAILABLE",
            etag: '"1"',
          },
        },
      },
    }),
  }),
  rule("POST: 404 for a category that is not there", {
    http: { method: "POST", path: "/pets", body: { name: "Rex", categoryId: 9007199254740991 } },
    rpc: call(createPet, { pet: { name: "Rex", categoryId: 9007199254740991n } }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  }),
  rule("POST: the largest int64 is a category that is not there", {
    http: { method: "POST", path: "/pets", body: '{"name":"Rex","categoryId":9223372036854775807}' },
    rpc: call(createPet, { pet: { name: "Rex", categoryId: 9223372036854775807n } }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND", says: "category" },
  }),
  rule("GET: the record and its ETag", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "GET", path: `/pets/${id}` }),
    rpc: ({ id }) => call(getPet, { petId: id }),
    answers: ({ id, categoryId, etag }) => ({
      http: {
        status: 200,
        headers: { etag },
        body: { id: Number(id), name: "Rex", categoryId: Number(categoryId), status: "available" },
      },
      rpc: {
        message: {
          pet: { id: `${id}`, name: "Rex", categoryId: `${categoryId}`, status: "PET_STATUS_AVAILABLE", etag },
        },
      },
    }),
  }),
  rule("GET: 404 for one that is not there", {
    http: { method: "GET", path: "/pets/0" },
    rpc: call(getPet, { petId: 0n }),
    fails: { http: "404 PET_NOT_FOUND", rpc: "NOT_FOUND PET_NOT_FOUND" },
  }),
  rule("PUT: replaces name and category", {
    given: async (shop) => ({ ...(await shop.pet()), to: (await shop.category()).id }),
    http: ({ id, to }) => ({ method: "PUT", path: `/pets/${id}`, body: { name: "Max", categoryId: Number(to) } }),
    rpc: ({ id, to }) => call(updatePet, { petId: id, pet: { name: "Max", categoryId: to } }),
    answers: ({ id, to }) => ({
      http: {
        status: 200,
        headers: { etag: '"2"' },
        body: { id: Number(id), name: "Max", categoryId: Number(to), status: "available" },
      },
      rpc: {
        message: {
          pet: { id: `${id}`, name: "Max", categoryId: `${to}`, status: "PET_STATUS_AVAILABLE", etag: '"2"' },
        },
      },
    }),
  }),
  rule("PUT: without status the listing stays as it is", {
    given: (shop) => shop.pet({ status: PENDING }),
    http: ({ id, categoryId }) => ({
      method: "PUT",
      path: `/pets/${id}`,
      body: { name: "Max", categoryId: Number(categoryId) },
    }),
    rpc: ({ id, categoryId }) => call(updatePet, { petId: id, pet: { name: "Max", categoryId } }),
    answers: ({ id, categoryId }) => ({
      http: {
        status: 200,
        body: { id: Number(id), name: "Max", categoryId: Number(categoryId), status: "pending" },
      },
      rpc: {
        message: {
          pet: { id: `${id}`, name: "Max", categoryId: `${categoryId}`, status: "PET_STATUS_PENDING", etag: '"2"' },
        },
      },
    }),
    afterwards: async ({ stockOf }, { id }) =>
      expect(await stockOf(id)).toMatchObject({ quantity: 1, status: PENDING }),
  }),
  rule("PATCH: without status the listing stays as it is", {
    given: (shop) => shop.pet({ status: PENDING }),
    http: ({ id }) => ({ method: "PATCH", path: `/pets/${id}`, body: { name: "Max" } }),
    rpc: ({ id }) => call(updatePet, { petId: id, pet: { name: "Max" }, updateMask: { paths: ["name"] } }),
    answers: ({ id, categoryId }) => ({
      http: {
        status: 200,
        body: { id: Number(id), name: "Max", categoryId: Number(categoryId), status: "pending" },
      },
      rpc: {
        message: {
          pet: { id: `${id}`, name: "Max", categoryId: `${categoryId}`, status: "PET_STATUS_PENDING", etag: '"2"' },
        },
      },
    }),
  }),
  rule("PATCH: {} changes nothing, and so does an empty mask", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "PATCH", path: `/pets/${id}`, body: {} }),
    rpc: ({ id }) =>
      call(updatePet, { petId: id, pet: { name: "Max", categoryId: 0n, status: 0 }, updateMask: { paths: [] } }),
    answers: ({ id, categoryId }) => ({
      http: {
        status: 200,
        headers: { etag: '"1"' },
        body: { id: Number(id), name: "Rex", categoryId: Number(categoryId), status: "available" },
      },
      rpc: {
        message: {
          pet: { id: `${id}`, name: "Rex", categoryId: `${categoryId}`, status: "PET_STATUS_AVAILABLE", etag: '"1"' },
        },
      },
    }),
  }),
  ...["name", "categoryId", "status"].map((member) =>
    rule(`PATCH: null for ${member}`, {
      given: (shop: Shop) => shop.pet(),
      http: ({ id }) => ({ method: "PATCH", path: `/pets/${id}`, body: { [member]: null } }),
      oneEndpoint: "protobuf messages hold no null",
      fails: { http: "400 VALIDATION_FAILED", says: member },
    }),
  ),
  rule("PUT: status null", {
    given: (shop) => shop.pet(),
    http: ({ id, categoryId }) => ({
      method: "PUT",
      path: `/pets/${id}`,
      body: { name: "Max", categoryId: Number(categoryId), status: null },
    }),
    oneEndpoint: "protobuf messages hold no null",
    fails: { http: "400 VALIDATION_FAILED", says: "status" },
  }),
  rule("PUT: 404 for one that is not there, before its category is looked for", {
    http: { method: "PUT", path: "/pets/9223372036854775807", body: { name: "Max", categoryId: 9007199254740991 } },
    rpc: call(updatePet, { petId: 9223372036854775807n, pet: { name: "Max", categoryId: 9007199254740991n } }),
    fails: { http: "404 PET_NOT_FOUND", rpc: "NOT_FOUND PET_NOT_FOUND" },
  }),
  rule("PUT: 404 for a category that is not there", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "PUT", path: `/pets/${id}`, body: { name: "Max", categoryId: 9007199254740991 } }),
    rpc: ({ id }) => call(updatePet, { petId: id, pet: { name: "Max", categoryId: 9007199254740991n } }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND" },
  }),
  rule("PATCH: an unknown category is looked for after the precondition", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({
      method: "PATCH",
      path: `/pets/${id}`,
      headers: { "if-match": '"99"' },
      body: { categoryId: 9007199254740991 },
    }),
    rpc: ({ id }) =>
      call(updatePet, {
        petId: id,
        pet: { categoryId: 9007199254740991n },
        updateMask: { paths: ["category_id"] },
        etag: '"99"',
      }),
    fails: { http: "412 ETAG_MISMATCH", rpc: "ABORTED ETAG_MISMATCH" },
  }),
  rule("DELETE: 204, and its inventory entry is gone", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "DELETE", path: `/pets/${id}` }),
    rpc: ({ id }) => call(deletePet, { petId: id }),
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
    afterwards: async ({ pets, inventory }, { id }) => {
      expect((await pets.batchGetPets({ petId: [id] })).pets).toEqual([]);
      expect((await inventory.batchGetInventory({ petId: [id] })).items).toEqual([]);
    },
  }),
  rule("DELETE: 404 the second time", {
    given: async (shop) => {
      const pet = await shop.pet();
      await shop.pets.deletePet({ petId: pet.id });
      return pet;
    },
    http: ({ id }) => ({ method: "DELETE", path: `/pets/${id}` }),
    rpc: ({ id }) => call(deletePet, { petId: id }),
    fails: { http: "404 PET_NOT_FOUND", rpc: "NOT_FOUND PET_NOT_FOUND" },
  }),
  rule("DELETE: 409 while open orders hold units of it", {
    given: ordered,
    http: ({ id }) => ({ method: "DELETE", path: `/pets/${id}` }),
    rpc: ({ id }) => call(deletePet, { petId: id }),
    fails: { http: "409 PET_HAS_OPEN_ORDERS", rpc: "FAILED_PRECONDITION PET_HAS_OPEN_ORDERS" },
  }),
  rule("DELETE: complete orders stay", {
    given: async (shop) => {
      const pet = await shop.pet();
      return { ...pet, order: await shop.order({ petId: pet.id, complete: true }) };
    },
    http: ({ id }) => ({ method: "DELETE", path: `/pets/${id}` }),
    rpc: ({ id }) => call(deletePet, { petId: id }),
    answers: () => ({ http: { status: 204 }, rpc: { message: {} } }),
    afterwards: async ({ orders }, { order }) =>
      expect((await orders.getOrder({ orderId: order.id ?? 0n })).order).toEqual(order),
  }),
];
