/** Idempotency keys in sequential calls. Concurrent calls are in keys.test.ts. */
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { createCategory } = CategoryService.method;
const { createPet } = PetService.method;
const { createOrder } = OrderService.method;

const REPLAYED = { "idempotent-replayed": "true" };
const NOT_REPLAYED = { "idempotent-replayed": null };

/** Creates a category with an idempotency key. */
const keyed = async (shop: Shop) => {
  const key = shop.unique();
  return { key, ...(await shop.category({ name: "dog", description: "barks" }, key)) };
};
const post = (key: string, body: unknown) => ({
  method: "POST",
  path: "/categories",
  headers: { "idempotency-key": key },
  body,
});
const again = {
  http: ({ key }: { key: string }) => post(key, { name: "dog", description: "barks" }),
  rpc: ({ key }: { key: string }) =>
    call(createCategory, { category: { name: "dog", description: "barks" }, requestId: key }),
};
const firstAnswer = ({ id }: { id: bigint }) => ({
  http: {
    status: 201,
    headers: { ...REPLAYED, location: `/categories/${id}`, etag: '"1"' },
    body: { id: Number(id), name: "dog", description: "barks" },
  },
  rpc: {
    headers: REPLAYED,
    message: { category: { id: `${id}`, name: "dog", description: "barks", etag: '"1"' } },
  },
});
const replayedAfter = (name: string, change: (shop: Shop, categoryId: bigint) => Promise<unknown>) =>
  rule(name, {
    given: async (shop: Shop) => {
      const made = await keyed(shop);
      await change(shop, made.id);
      return made;
    },
    ...again,
    answers: firstAnswer,
  });
/** A key may be sent as a string of RFC 8941, whose text it is then. */
const asString = (name: string, key: (unique: string) => string, sent: (unique: string) => string) =>
  rule(`a key as a structured field: ${name}`, {
    given: async (shop: Shop) => {
      const unique = shop.unique();
      return { unique, ...(await shop.category({ name: "dog", description: "barks" }, key(unique))) };
    },
    http: ({ unique }) => post(sent(unique), { name: "dog", description: "barks" }),
    rpc: ({ unique }) =>
      call(createCategory, { category: { name: "dog", description: "barks" }, requestId: key(unique) }),
    answers: firstAnswer,
  });
/** Bodies are the same if the members that the operation knows are the same. */
const same = (name: string, text: string) =>
  rule(`the same body: ${name}`, {
    given: keyed,
    http: ({ key }) => post(key, text),
    oneEndpoint: "protobuf messages have one form",
    answers: (made) => ({ http: firstAnswer(made).http }),
  });
const otherBody = (name: string, text: string, category: { name: string; description?: string }) =>
  rule(`another body: ${name}`, {
    given: keyed,
    http: ({ key }) => post(key, text),
    rpc: ({ key }) => call(createCategory, { category, requestId: key }),
    fails: { http: "422 IDEMPOTENCY_KEY_REUSED", rpc: "INVALID_ARGUMENT IDEMPOTENCY_KEY_REUSED" },
  });
const badKey = (name: string, key: string) =>
  rule(`a key is 1 to 255 visible ASCII characters: ${name}`, {
    http: post(key, { name: "dog" }),
    rpc: call(createCategory, { category: { name: "dog" }, requestId: key }),
    fails: { http: "400 INVALID_HEADER", rpc: "INVALID_ARGUMENT VALIDATION_FAILED" },
  });
const goodKey = (name: string, keyOf: (unique: string) => string) =>
  rule(`a key may be ${name}`, {
    given: async ({ unique }: Shop) => ({ key: keyOf(unique()) }),
    ...again,
    answers: () => ({
      http: { status: 201, headers: NOT_REPLAYED, body: expect.any(Object) },
      rpc: { headers: NOT_REPLAYED, message: expect.any(Object) },
    }),
  });

export const keys: readonly Case[] = [
  goodKey("one character", (unique) => String.fromCharCode(33 + (Number(unique.split("-")[1]) % 90))),
  goodKey("255 characters", (unique) => unique.padEnd(255, "~")),
  goodKey("any visible character", (unique) => `${unique}!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~`),
  badKey("none", ""),
  badKey("256", "k".repeat(256)),
  badKey("a space within", "a b"),
  badKey("not ASCII", "clé"),
  rule("the same key and body replays the first answer", { given: keyed, ...again, answers: firstAnswer }),
  replayedAfter("a replay is the first answer, also when the record was changed since", ({ categories }, categoryId) =>
    categories.updateCategory({ categoryId, category: { name: "wolf" } }),
  ),
  replayedAfter("a replay is the first answer, also when the record was deleted since", ({ categories }, categoryId) =>
    categories.deleteCategory({ categoryId }),
  ),
  rule("a replay of a pet, whose category is gone", {
    given: async (shop) => {
      const key = shop.unique();
      const pet = await shop.pet({}, key);
      await shop.pets.deletePet({ petId: pet.id });
      await shop.categories.deleteCategory({ categoryId: pet.categoryId });
      return { key, ...pet };
    },
    http: ({ key, categoryId }) => ({
      method: "POST",
      path: "/pets",
      headers: { "idempotency-key": key },
      body: { name: "Rex", categoryId: Number(categoryId) },
    }),
    rpc: ({ key, categoryId }) => call(createPet, { pet: { name: "Rex", categoryId }, requestId: key }),
    answers: ({ id, categoryId }) => ({
      http: {
        status: 201,
        headers: { ...REPLAYED, location: `/pets/${id}`, etag: '"1"' },
        body: { id: Number(id), name: "Rex", categoryId: Number(categoryId), status: "available" },
      },
      rpc: { headers: REPLAYED, message: { pet: expect.objectContaining({ id: `${id}`, etag: '"1"' }) } },
    }),
  }),
  rule("a replay of an order that was completed since, and a key never takes units twice", {
    given: async (shop) => {
      const key = shop.unique();
      const order = await shop.order({ petId: (await shop.stocked(5)).id, quantity: 2 }, key);
      await shop.orders.updateOrder({ orderId: order.id ?? 0n, order: { complete: true } });
      return { key, ...order };
    },
    http: ({ key, petId }) => ({
      method: "POST",
      path: "/store/orders",
      headers: { "idempotency-key": key },
      body: { petId: Number(petId), quantity: 2 },
    }),
    rpc: ({ key, petId }) => call(createOrder, { order: { petId, quantity: 2 } as never, requestId: key }),
    answers: ({ id, petId }) => ({
      http: {
        status: 201,
        headers: { ...REPLAYED, location: `/store/orders/${id}`, etag: '"1"' },
        body: { id: Number(id), petId: Number(petId), quantity: 2, complete: false },
      },
      rpc: {
        headers: REPLAYED,
        message: { order: { id: `${id}`, petId: `${petId}`, quantity: 2, complete: false, etag: '"1"' } },
      },
    }),
    afterwards: async ({ stockOf }, { petId = 0n }) => expect((await stockOf(petId)).quantity).toBe(3),
  }),
  asString(
    "in quotes",
    (it) => it,
    (it) => `"${it}"`,
  ),
  asString(
    "with what is escaped there",
    (it) => `${it}"\\`,
    (it) => `"${it}\\"\\\\"`,
  ),
  asString(
    "a quote that does not end is part of the key",
    (it) => `"${it}`,
    (it) => `"${it}`,
  ),
  asString(
    "and so are quotes around what is no such string",
    (it) => `"${it}\\n"`,
    (it) => `"${it}\\n"`,
  ),
  ...['""', '"a b"'].map((key) =>
    rule(`a key as a structured field: ${key} is none`, {
      http: post(key, { name: "dog" }),
      oneEndpoint: "RPCs have it in a field",
      fails: { http: "400 INVALID_HEADER", says: "Idempotency-Key: must be 1 to 255 visible ASCII characters" },
    }),
  ),
  same("another order", '{"description":"barks","name":"dog"}'),
  same("white space", ' {\n"name" :\t"dog" , "description":"barks"}\r\n'),
  same("escapes", '{"\\u006eame":"\\u0064og","description":"barks"}'),
  same("unknown members and those that the service assigns", '{"id":7,"name":"dog","description":"barks","x":{}}'),
  otherBody("another name", '{"name":"cat","description":"barks"}', { name: "cat", description: "barks" }),
  otherBody("a member less", '{"name":"dog"}', { name: "dog" }),
  rule("what is refused before stored records are looked at binds no key", {
    given: async ({ unique, category }: Shop) => {
      const key = unique();
      await expect(category({ name: "" }, key)).rejects.toThrow();
      return { key };
    },
    ...again,
    answers: () => ({
      http: { status: 201, headers: NOT_REPLAYED, body: expect.any(Object) },
      rpc: { headers: NOT_REPLAYED, message: expect.any(Object) },
    }),
  }),
  rule("another body: an explicit default differs from an absent member", {
    given: async (shop) => {
      const key = shop.unique();
      await shop.order({}, key);
      return { key };
    },
    http: ({ key }) => ({
      method: "POST",
      path: "/store/orders",
      headers: { "idempotency-key": key },
      body: { complete: false },
    }),
    rpc: ({ key }) => call(createOrder, { order: { complete: false }, requestId: key }),
    fails: { http: "422 IDEMPOTENCY_KEY_REUSED", rpc: "INVALID_ARGUMENT IDEMPOTENCY_KEY_REUSED" },
  }),
  rule("numbers that are the same are the same body", {
    given: async (shop) => {
      const key = shop.unique();
      return { key, ...(await shop.order({ quantity: 1000 }, key)) };
    },
    http: ({ key }) => ({
      method: "POST",
      path: "/store/orders",
      headers: { "idempotency-key": key },
      body: '{"quantity":1e3}',
    }),
    oneEndpoint: "protobuf messages have one form",
    answers: ({ id }) => ({
      http: {
        status: 201,
        headers: { ...REPLAYED, location: `/store/orders/${id}` },
        body: { id: Number(id), quantity: 1000, complete: false },
      },
    }),
  }),
  rule("a key belongs to one RPC", {
    given: keyed,
    http: ({ key }) => ({ method: "POST", path: "/store/orders", headers: { "idempotency-key": key }, body: {} }),
    rpc: ({ key }) => call(createOrder, { order: {}, requestId: key }),
    answers: () => ({
      http: { status: 201, headers: NOT_REPLAYED, body: { id: expect.any(Number), complete: false } },
      rpc: { headers: NOT_REPLAYED, message: { order: { id: expect.any(String), complete: false, etag: '"1"' } } },
    }),
  }),
  rule("a refusal binds a key: another body is refused", {
    given: async (shop) => {
      const key = shop.unique();
      const pet = await shop.pet();
      await expect(shop.order({ petId: pet.id, quantity: 2 }, key)).rejects.toThrow();
      return { key, ...pet };
    },
    http: ({ key, id }) => ({
      method: "POST",
      path: "/store/orders",
      headers: { "idempotency-key": key },
      body: { petId: Number(id), quantity: 1 },
    }),
    rpc: ({ key, id }) => call(createOrder, { order: { petId: id, quantity: 1 }, requestId: key }),
    fails: { http: "422 IDEMPOTENCY_KEY_REUSED", rpc: "INVALID_ARGUMENT IDEMPOTENCY_KEY_REUSED" },
  }),
  rule("a refusal binds a key: the same body is refused again, though it would be accepted by now", {
    given: async (shop) => {
      const key = shop.unique();
      const pet = await shop.pet();
      await expect(shop.order({ petId: pet.id, quantity: 2 }, key)).rejects.toThrow();
      await shop.inventory.updateInventory({ petId: pet.id, inventory: { quantity: 2 } });
      return { key, ...pet };
    },
    http: ({ key, id }) => ({
      method: "POST",
      path: "/store/orders",
      headers: { "idempotency-key": key },
      body: { petId: Number(id), quantity: 2 },
    }),
    rpc: ({ key, id }) => call(createOrder, { order: { petId: id, quantity: 2 }, requestId: key }),
    fails: { http: "409 INSUFFICIENT_STOCK", rpc: "FAILED_PRECONDITION INSUFFICIENT_STOCK", headers: REPLAYED },
  }),
  rule("a refusal binds a key: a pet in a category that is not there", {
    given: async (shop) => {
      const key = shop.unique();
      await expect(shop.pet({ categoryId: 9007199254740991n }, key)).rejects.toThrow();
      return { key };
    },
    http: ({ key }) => ({
      method: "POST",
      path: "/pets",
      headers: { "idempotency-key": key },
      body: { name: "Rex", categoryId: 9007199254740991 },
    }),
    rpc: ({ key }) => call(createPet, { pet: { name: "Rex", categoryId: 9007199254740991n }, requestId: key }),
    fails: { http: "404 CATEGORY_NOT_FOUND", rpc: "NOT_FOUND CATEGORY_NOT_FOUND", headers: REPLAYED },
  }),
  rule("a key works across the endpoints", {
    given: keyed,
    ...again,
    answers: firstAnswer,
    afterwards: async ({ categories }, { key, id }) => {
      const { category } = await categories.createCategory({
        category: { name: "dog", description: "barks" },
        requestId: key,
      });
      expect(category?.id).toBe(id);
    },
  }),
];
