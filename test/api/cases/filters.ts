/** The filters of single lists, and batch reads. */
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, ONLY_HTTP, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { listPets, batchGetPets } = PetService.method;
const { listOrders, batchGetOrders } = OrderService.method;
const { listInventory, batchGetInventory } = InventoryService.method;
const { listCategories, batchGetCategories } = CategoryService.method;
const { AVAILABLE, PENDING, SOLD } = PetStatus;

/** One pet of each status in one category. */
const oneOfEach = async (shop: Shop) => {
  const { id: categoryId } = await shop.category();
  const [available, pending, sold] = [
    await shop.pet({ categoryId }),
    await shop.pet({ categoryId, status: PENDING }),
    await shop.pet({ categoryId, status: SOLD }),
  ];
  return { categoryId, available, pending, sold, ids: [available.id, pending.id, sold.id] };
};

/** One order of each kind for a pet: open, complete. */
const bothOrders = async (shop: Shop) => {
  const { id: petId } = await shop.stocked(5);
  return { petId, open: await shop.order({ petId }), complete: await shop.order({ petId, complete: true }) };
};
/** An order that was created without `complete`. */
const silent = (shop: Shop) => shop.order();

const shown = (name: "id" | "petId", field: string, ...ids: (bigint | undefined)[]) => ({
  http: { status: 200, body: ids.map((id) => expect.objectContaining({ [name]: Number(id) })) },
  rpc: {
    message: { [field]: ids.map((id) => expect.objectContaining({ [name]: String(id) })), nextPageToken: "" },
  },
});
const badStatus = (title: string, path: string, status: string) =>
  rule(`status: ${title} (${path})`, {
    http: { method: "GET", path: `${path}?status=${status}` },
    oneEndpoint: ONLY_HTTP.path,
    fails: { http: "400 INVALID_QUERY", says: "status" },
  });
const badRequest = (title: string, one: Case["rpc"]) =>
  rule(title, { rpc: one as never, oneEndpoint: ONLY_HTTP.path, fails: { rpc: "INVALID_ARGUMENT VALIDATION_FAILED" } });
const badBoolean = (value: string) =>
  rule(`orders: complete=${value} is no boolean`, {
    http: { method: "GET", path: `/store/orders?complete=${value}` },
    oneEndpoint: ONLY_HTTP.path,
    fails: { http: "400 INVALID_QUERY", says: "complete" },
  });
const capped = (limit: string) =>
  rule(`limit ${limit} is 100`, {
    given: hundredAndOne,
    http: { method: "GET", path: `/categories?limit=${limit}` },
    rpc: call(listCategories, { limit: Math.min(Number(limit), 2147483647) }),
    answers: () => ({
      http: { status: 200, headers: { link: expect.stringContaining('rel="next"') }, body: aHundred },
      rpc: { message: { categories: aHundred, nextPageToken: expect.stringMatching(/./) } },
    }),
  });

async function hundredAndOne(shop: Shop): Promise<void> {
  const { categories, nextPageToken } = await shop.categories.listCategories({});
  if (nextPageToken === "") await Promise.all(Array.from({ length: 101 - categories.length }, () => shop.category()));
}
const aHundred = { asymmetricMatch: (value: unknown) => Array.isArray(value) && value.length === 100 };

export const filters = [
  capped("101"),
  capped("2147483648"),
  capped("99999999999999999999999999"),
  rule("without limit, pages have 100 records", {
    given: hundredAndOne,
    http: { method: "GET", path: "/categories" },
    rpc: call(listCategories, {}),
    answers: () => ({
      http: { status: 200, body: aHundred },
      rpc: { message: { categories: aHundred, nextPageToken: expect.stringMatching(/./) } },
    }),
  }),
  rule("pets: one status", {
    given: oneOfEach,
    http: ({ categoryId }) => ({ method: "GET", path: `/pets?categoryId=${categoryId}&status=pending` }),
    rpc: ({ categoryId }) => call(listPets, { categoryId, status: [PENDING] }),
    answers: ({ pending }) => shown("id", "pets", pending.id),
  }),
  rule("pets: several statuses, repeated and separated by commas", {
    given: oneOfEach,
    http: ({ categoryId }) => ({
      method: "GET",
      path: `/pets?status=sold,available&categoryId=${categoryId}&status=sold`,
    }),
    rpc: ({ categoryId }) => call(listPets, { categoryId, status: [SOLD, AVAILABLE, SOLD] }),
    answers: ({ available, sold }) => shown("id", "pets", sold.id, available.id),
  }),
  rule("pets: filters are joined by and", {
    given: oneOfEach,
    http: ({ available, pending }) => ({
      method: "GET",
      path: `/pets?status=pending&id=${available.id},${pending.id}`,
    }),
    rpc: ({ available, pending }) => call(listPets, { status: [PENDING], id: [available.id, pending.id] }),
    answers: ({ pending }) => shown("id", "pets", pending.id),
  }),
  rule("pets: GET /pets?id=N is the successor of GET /pets/N: an array with its ETag and without deprecation", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "GET", path: `/pets?id=${id}` }),
    rpc: ({ id }) => call(listPets, { id: [id] }),
    answers: ({ id, categoryId, etag }) => ({
      http: {
        status: 200,
        headers: { etag, deprecation: null, sunset: null, link: null },
        body: [{ id: Number(id), name: "Rex", categoryId: Number(categoryId), status: "available" }],
      },
      rpc: { message: { pets: [expect.objectContaining({ id: `${id}` })], nextPageToken: "" } },
    }),
  }),
  ...["0", "-1", "9007199254740993", "9223372036854775807"].map((categoryId) =>
    rule(`pets: categoryId=${categoryId} matches nothing`, {
      http: { method: "GET", path: `/pets?categoryId=${categoryId}` },
      rpc: call(listPets, { categoryId: BigInt(categoryId) }),
      answers: () => shown("id", "pets"),
    }),
  ),
  rule("pets: categoryId twice", {
    http: { method: "GET", path: "/pets?categoryId=1&categoryId=1" },
    oneEndpoint: ONLY_HTTP.path,
    fails: { http: "400 INVALID_QUERY", says: "categoryId" },
  }),
  ...["/pets", "/store/inventory"].flatMap((path) => [
    badStatus("unknown", path, "lost"),
    badStatus("another spelling", path, "Available"),
    badStatus("the name of proto3 JSON", path, "PET_STATUS_SOLD"),
    badStatus("a number", path, "1"),
    badStatus("empty", path, ""),
    badStatus("more than 100 values", path, Array(101).fill("sold").join(",")),
  ]),
  badRequest("pets: a status sent as 0", call(listPets, { status: [0] })),
  badRequest("pets: a status that there is not", call(listPets, { status: [7 as PetStatus] })),
  badRequest("inventory: a status sent as 0", call(listInventory, { status: [0] })),
  badRequest("batch reads take at most 100 ids: pets", call(batchGetPets, { petId: Array(101).fill(1n) })),
  badRequest(
    "batch reads take at most 100 ids: categories",
    call(batchGetCategories, { categoryId: Array(101).fill(1n) }),
  ),
  badRequest("batch reads take at most 100 ids: orders", call(batchGetOrders, { orderId: Array(101).fill(1n) })),
  badRequest("batch reads take at most 100 ids: inventory", call(batchGetInventory, { petId: Array(101).fill(1n) })),
  rule("inventory: by status", {
    given: oneOfEach,
    http: ({ ids }) => ({ method: "GET", path: `/store/inventory?petId=${ids}&status=sold&status=pending` }),
    rpc: ({ ids }) => call(listInventory, { petId: ids, status: [SOLD, PENDING] }),
    answers: ({ pending, sold }) => shown("petId", "items", sold.id, pending.id),
  }),
  rule("orders: complete=true", {
    given: bothOrders,
    http: ({ petId }) => ({ method: "GET", path: `/store/orders?petId=${petId}&complete=true` }),
    rpc: ({ petId }) => call(listOrders, { petId, complete: true }),
    answers: ({ complete }) => shown("id", "orders", complete.id),
  }),
  rule("orders: complete=false", {
    given: bothOrders,
    http: ({ petId }) => ({ method: "GET", path: `/store/orders?petId=${petId}&complete=false` }),
    rpc: ({ petId }) => call(listOrders, { petId, complete: false }),
    answers: ({ open }) => shown("id", "orders", open.id),
  }),
  rule("orders: an absent complete counts as false", {
    given: silent,
    http: ({ id }) => ({ method: "GET", path: `/store/orders?id=${id}&complete=false` }),
    rpc: ({ id = 0n }) => call(listOrders, { id: [id], complete: false }),
    answers: ({ id }) => shown("id", "orders", id),
  }),
  rule("orders: an absent complete counts as false, also without other filters", {
    given: silent,
    // Among the newest: of several processes each has ids at hand.
    http: { method: "GET", path: "/store/orders?complete=false&limit=10" },
    rpc: call(listOrders, { complete: false, limit: 10 }),
    answers: ({ id }) => ({
      http: { status: 200, body: expect.arrayContaining([expect.objectContaining({ id: Number(id) })]) },
      rpc: {
        message: {
          orders: expect.arrayContaining([expect.objectContaining({ id: `${id}` })]),
          nextPageToken: expect.any(String),
        },
      },
    }),
  }),
  rule("orders: petId=0 matches nothing, not even orders without a pet", {
    given: silent,
    http: { method: "GET", path: "/store/orders?petId=0" },
    rpc: call(listOrders, { petId: 0n }),
    answers: () => shown("id", "orders"),
  }),
  ...["True", "1", "", "yes"].map(badBoolean),
  rule("batch reads come in the order asked, a repeated id once, a missing one not at all", {
    given: oneOfEach,
    rpc: ({ available, pending, sold }) =>
      call(batchGetPets, { petId: [sold.id, 0n, available.id, 9223372036854775807n, sold.id, pending.id] }),
    oneEndpoint: "batch reads exist as RPCs only",
    answers: ({ available, pending, sold }) => ({
      rpc: { message: { pets: [sold, available, pending].map(({ id }) => expect.objectContaining({ id: `${id}` })) } },
    }),
  }),
  rule("batch reads of the other three kinds", {
    given: async (shop) => [await shop.category(), await shop.category()],
    rpc: ([a, b]) => call(batchGetCategories, { categoryId: [a?.id ?? 0n, b?.id ?? 0n, a?.id ?? 0n, -1n] }),
    oneEndpoint: "batch reads exist as RPCs only",
    answers: (both) => ({
      rpc: { message: { categories: both.map(({ id }) => expect.objectContaining({ id: `${id}` })) } },
    }),
    afterwards: async (shop) => {
      const pets = [await shop.pet(), await shop.pet()].map(({ id }) => id).toReversed();
      const { items } = await shop.inventory.batchGetInventory({ petId: [...pets, ...pets, 0n] });
      expect(items.map(({ petId }) => petId)).toEqual(pets);
      const orders = [await shop.order(), await shop.order()].map(({ id = 0n }) => id).toReversed();
      const found = await shop.orders.batchGetOrders({ orderId: [...orders, 0n, ...orders] });
      expect(found.orders.map(({ id }) => id)).toEqual(orders);
    },
  }),
];
