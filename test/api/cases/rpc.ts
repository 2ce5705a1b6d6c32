/** Features of RPCs alone: masks, the size of messages, internal services. */
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, rule } from "./case.ts";

const { createCategory, updateCategory } = CategoryService.method;
const { updatePet } = PetService.method;
const MASKS = "HTTP has PUT and PATCH instead of masks";

const badMask = (name: string, rpc: Case["rpc"], says: string) =>
  rule(`mask: ${name}`, {
    rpc: rpc as never,
    oneEndpoint: MASKS,
    fails: { rpc: "INVALID_ARGUMENT VALIDATION_FAILED", says },
  });
const paths = (...names: string[]) => ({ updateMask: { paths: names } });

export const rpc: readonly Case[] = [
  rule("mask: none replaces", {
    given: (shop) => shop.category({ name: "dog", description: "barks" }),
    rpc: ({ id }) => call(updateCategory, { categoryId: id, category: { name: "wolf" } }),
    oneEndpoint: MASKS,
    answers: ({ id }) => ({ rpc: { message: { category: { id: `${id}`, name: "wolf", etag: '"2"' } } } }),
  }),
  rule("mask: what it does not name is not looked at", {
    given: (shop) => shop.category({ name: "dog", description: "barks" }),
    rpc: ({ id }) =>
      call(updateCategory, {
        categoryId: id,
        category: { name: "x".repeat(999), description: "howls" },
        ...paths("description"),
      }),
    oneEndpoint: MASKS,
    answers: ({ id }) => ({
      rpc: { message: { category: { id: `${id}`, name: "dog", description: "howls", etag: '"2"' } } },
    }),
  }),
  rule("mask: empty, on inventory", {
    given: (shop) => shop.pet(),
    rpc: ({ id }) =>
      call(InventoryService.method.updateInventory, { petId: id, inventory: { quantity: -9 }, ...paths() }),
    oneEndpoint: MASKS,
    answers: ({ id }) => ({
      rpc: { message: { item: { petId: `${id}`, quantity: 1, status: "PET_STATUS_AVAILABLE", etag: '"1"' } } },
    }),
  }),
  rule("mask: empty, on an order", {
    given: (shop) => shop.order({ quantity: 2 }),
    rpc: ({ id = 0n }) =>
      call(OrderService.method.updateOrder, { orderId: id, order: { quantity: 3, complete: true }, ...paths() }),
    oneEndpoint: MASKS,
    answers: ({ id }) => ({ rpc: { message: { order: { id: `${id}`, quantity: 2, complete: false, etag: '"1"' } } } }),
  }),
  badMask("a field that there is not", call(updatePet, { petId: 1n, pet: {}, ...paths("colour") }), "update_mask"),
  badMask("a field that the service assigns", call(updatePet, { petId: 1n, pet: {}, ...paths("id") }), "update_mask"),
  badMask("a required field without its value", call(updatePet, { petId: 1n, pet: {}, ...paths("name") }), "name"),
  badMask(
    "a status without its value, which would be null",
    call(updatePet, { petId: 1n, pet: {}, ...paths("status") }),
    "status",
  ),
  badMask(
    "an order's quantity without its value",
    call(OrderService.method.updateOrder, { orderId: 1n, order: {}, ...paths("quantity") }),
    "quantity",
  ),
  badMask(
    "an order's complete without its value",
    call(OrderService.method.updateOrder, { orderId: 1n, order: {}, ...paths("complete") }),
    "complete",
  ),
  rule("a message above 1 MiB", {
    rpc: call(createCategory, { category: { name: "dog", description: "x".repeat(1024 * 1024) } }),
    oneEndpoint: "bodies are limited to 64 KiB",
    fails: { rpc: "RESOURCE_EXHAUSTED PAYLOAD_TOO_LARGE" },
  }),
  rule("a message below that is judged by its rules", {
    rpc: call(createCategory, { category: { name: "dog", description: "x".repeat(1_000_000) } }),
    oneEndpoint: "bodies are limited to 64 KiB",
    fails: { rpc: "INVALID_ARGUMENT VALIDATION_FAILED", says: "description" },
  }),
  rule("an answer holds the etag that HTTP sends as a header, and int64 as text in its JSON", {
    rpc: call(createCategory, { category: { name: "dog" } }),
    oneEndpoint: "this is the other dialect",
    answers: () => ({
      rpc: { message: { category: { id: expect.stringMatching(/^\d+$/), name: "dog", etag: '"1"' } } },
    }),
  }),
];
