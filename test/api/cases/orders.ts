/** Placing and reading orders. */
import { expect } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { type Case, call, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const { createOrder, getOrder } = OrderService.method;
const { AVAILABLE, PENDING, SOLD } = PetStatus;
const path = "/store/orders";

/** A date as sent and as answered. */
const shipDate = (name: string, sent: string, seconds: bigint, nanos: number, answered: string) =>
  rule(`shipDate: ${name}`, {
    http: { method: "POST", path, body: { shipDate: sent } },
    rpc: call(createOrder, { order: { shipDate: { seconds, nanos } } }),
    answers: () => ({
      http: { status: 201, body: { id: expect.any(Number), shipDate: answered, complete: false } },
      rpc: { message: { order: { id: expect.any(String), shipDate: answered, complete: false, etag: '"1"' } } },
    }),
  });

const badDate = (name: string, sent: unknown) =>
  rule(`shipDate: ${name}`, {
    http: { method: "POST", path, body: { shipDate: sent } },
    oneEndpoint: "a protobuf timestamp can't hold it",
    fails: { http: "400 VALIDATION_FAILED", says: "shipDate" },
  });

/** An order that is refused because of the pet's state. */
const refused = (
  name: string,
  given: (shop: Shop) => Promise<{ id: bigint }>,
  quantity: number,
  reason: Refusal,
): Case =>
  rule(`POST: ${name}`, {
    given,
    http: ({ id }) => ({ method: "POST", path, body: { petId: Number(id), quantity } }),
    rpc: ({ id }) => call(createOrder, { order: { petId: id, quantity } }),
    fails: { http: `409 ${reason}`, rpc: `FAILED_PRECONDITION ${reason}` },
  });
type Refusal = "PET_NOT_AVAILABLE" | "INSUFFICIENT_STOCK";

const soldOut = async (shop: Shop) => {
  const pet = await shop.pet();
  await shop.order({ petId: pet.id });
  return pet;
};

export const orders = [
  rule("POST: {} is legal, and such an order shows its id and that it is not complete", {
    http: { method: "POST", path, body: {} },
    rpc: call(createOrder, { order: {} }),
    answers: () => ({
      http: {
        status: 201,
        headers: { location: expect.stringMatching(/^\/store\/orders\/[1-9]\d*$/), etag: '"1"' },
        body: { id: expect.any(Number), complete: false },
      },
      rpc: { message: { order: { id: expect.stringMatching(/^[1-9]\d*$/), complete: false, etag: '"1"' } } },
    }),
  }),
  rule(
    "POST: without petId, the quantity stays as sent or absent, and complete too, but that absent is shown as false",
    {
      http: { method: "POST", path, body: { quantity: 2147483647, complete: true } },
      rpc: call(createOrder, { order: { quantity: 2147483647, complete: true } }),
      answers: () => ({
        http: { status: 201, body: { id: expect.any(Number), quantity: 2147483647, complete: true } },
        rpc: { message: { order: { id: expect.any(String), quantity: 2147483647, complete: true, etag: '"1"' } } },
      }),
    },
  ),
  rule("POST: the id is ignored, and not even looked at under strict handling", {
    http: { method: "POST", path, headers: { prefer: "handling=strict" }, body: { id: "mine", quantity: 1 } },
    rpc: call(createOrder, { order: { id: -7n, quantity: 1, etag: "mine" } }),
    answers: () => ({
      http: { status: 201, body: { id: expect.any(Number), quantity: 1, complete: false } },
      rpc: {
        message: { order: { id: expect.stringMatching(/^[1-9]\d*$/), quantity: 1, complete: false, etag: '"1"' } },
      },
    }),
  }),
  rule("POST: with petId, quantity is 1 and complete false unless said; its units leave the stock at once", {
    given: (shop) => shop.stocked(5),
    http: ({ id }) => ({ method: "POST", path, body: { petId: Number(id) } }),
    rpc: ({ id }) => call(createOrder, { order: { petId: id } }),
    answers: ({ id }) => ({
      http: {
        status: 201,
        headers: { etag: '"1"' },
        body: { id: expect.any(Number), petId: Number(id), quantity: 1, complete: false },
      },
      rpc: {
        message: { order: { id: expect.any(String), petId: `${id}`, quantity: 1, complete: false, etag: '"1"' } },
      },
    }),
    afterwards: async ({ stockOf }, { id }) =>
      expect(await stockOf(id)).toMatchObject({ quantity: 4, status: AVAILABLE }),
  }),
  rule("POST: the last unit makes the entry pending", {
    given: (shop) => shop.stocked(3),
    http: ({ id }) => ({ method: "POST", path, body: { petId: Number(id), quantity: 3 } }),
    rpc: ({ id }) => call(createOrder, { order: { petId: id, quantity: 3 } }),
    answers: ({ id }) => ({
      http: { status: 201, body: { id: expect.any(Number), petId: Number(id), quantity: 3, complete: false } },
      rpc: {
        message: { order: { id: expect.any(String), petId: `${id}`, quantity: 3, complete: false, etag: '"1"' } },
      },
    }),
    afterwards: async ({ stockOf }, { id }) =>
      expect(await stockOf(id)).toMatchObject({ quantity: 0, status: PENDING }),
  }),
  rule("POST: complete: true places and fulfils in one go", {
    given: (shop) => shop.stocked(2),
    http: ({ id }) => ({ method: "POST", path, body: { petId: Number(id), quantity: 2, complete: true } }),
    rpc: ({ id }) => call(createOrder, { order: { petId: id, quantity: 2, complete: true } }),
    answers: ({ id }) => ({
      http: { status: 201, body: { id: expect.any(Number), petId: Number(id), quantity: 2, complete: true } },
      rpc: {
        message: { order: { id: expect.any(String), petId: `${id}`, quantity: 2, complete: true, etag: '"1"' } },
      },
    }),
    afterwards: async ({ stockOf }, { id }) => expect(await stockOf(id)).toMatchObject({ quantity: 0, status: SOLD }),
  }),
  rule("POST: 404 for a pet that is not there", {
    http: { method: "POST", path, body: '{"petId":9223372036854775807}' },
    rpc: call(createOrder, { order: { petId: 9223372036854775807n } }),
    fails: { http: "404 PET_NOT_FOUND", rpc: "NOT_FOUND PET_NOT_FOUND", says: "9223372036854775807" },
  }),
  rule("POST: 404 for a pet that was deleted", {
    given: async (shop) => {
      const pet = await shop.pet();
      await shop.pets.deletePet({ petId: pet.id });
      return pet;
    },
    http: ({ id }) => ({ method: "POST", path, body: { petId: Number(id) } }),
    rpc: ({ id }) => call(createOrder, { order: { petId: id } }),
    fails: { http: "404 PET_NOT_FOUND", rpc: "NOT_FOUND PET_NOT_FOUND" },
  }),
  refused("409 for a pet on hold", (shop) => shop.pet({ status: PENDING }), 1, "PET_NOT_AVAILABLE"),
  refused("409 for a pet sold elsewhere", (shop) => shop.pet({ status: SOLD }), 1, "PET_NOT_AVAILABLE"),
  refused("409 for a pet whose units other orders hold", soldOut, 1, "PET_NOT_AVAILABLE"),
  refused("409 for more than there is", (shop) => shop.stocked(4), 5, "INSUFFICIENT_STOCK"),
  refused("not available goes before insufficient", (shop) => shop.pet({ status: PENDING }), 5, "PET_NOT_AVAILABLE"),
  rule("POST: 409 when complete in one go, too", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "POST", path, body: { petId: Number(id), quantity: 2, complete: true } }),
    rpc: ({ id }) => call(createOrder, { order: { petId: id, quantity: 2, complete: true } }),
    fails: { http: "409 INSUFFICIENT_STOCK", rpc: "FAILED_PRECONDITION INSUFFICIENT_STOCK" },
  }),
  rule("GET: the record and its ETag", {
    given: (shop) => shop.order({ quantity: 7 }),
    http: ({ id }) => ({ method: "GET", path: `${path}/${id}` }),
    rpc: ({ id = 0n }) => call(getOrder, { orderId: id }),
    answers: ({ id, etag }) => ({
      http: { status: 200, headers: { etag }, body: { id: Number(id), quantity: 7, complete: false } },
      rpc: { message: { order: { id: `${id}`, quantity: 7, complete: false, etag } } },
    }),
  }),
  rule("GET: 404 for one that is not there", {
    http: { method: "GET", path: `${path}/-9223372036854775808` },
    rpc: call(getOrder, { orderId: -9223372036854775808n }),
    fails: { http: "404 ORDER_NOT_FOUND", rpc: "NOT_FOUND ORDER_NOT_FOUND", says: "-9223372036854775808" },
  }),
  rule("an order that was refused exists nowhere", {
    given: async (shop) => {
      const pet = await shop.pet();
      await expect(shop.order({ petId: pet.id, quantity: 2 })).rejects.toThrow();
      return pet;
    },
    http: ({ id }) => ({ method: "GET", path: `${path}?petId=${id}` }),
    rpc: ({ id }) => call(OrderService.method.listOrders, { petId: id }),
    answers: () => ({ http: { status: 200, body: [] }, rpc: { message: { orders: [], nextPageToken: "" } } }),
  }),
  shipDate("UTC", "2027-06-01T12:00:00Z", 1811851200n, 0, "2027-06-01T12:00:00Z"),
  shipDate("another zone is answered as UTC", "2027-06-01T14:30:00+02:30", 1811851200n, 0, "2027-06-01T12:00:00Z"),
  shipDate(
    "to the nanosecond",
    "2027-06-01T12:00:00.123456789Z",
    1811851200n,
    123456789,
    "2027-06-01T12:00:00.123456789Z",
  ),
  shipDate("the first", "0001-01-01T00:00:00Z", -62135596800n, 0, "0001-01-01T00:00:00Z"),
  shipDate("the last", "9999-12-31T23:59:59.999999999Z", 253402300799n, 999999999, "9999-12-31T23:59:59.999999999Z"),
  badDate("second 60", "2016-12-31T23:59:60Z"),
  badDate("year 0", "0000-12-31T23:59:59Z"),
  badDate("year 10000", "10000-01-01T00:00:00Z"),
  badDate("year 0 after the offset", "0001-01-01T00:00:00+01:00"),
  badDate("no such day", "2027-02-29T12:00:00Z"),
  badDate("no zone", "2027-06-01T12:00:00"),
  badDate("only a day", "2027-06-01"),
  badDate("a number", 1811851200),
  badDate("an empty text", ""),
  badDate("finer than a nanosecond", "2027-06-01T12:00:00.1234567891Z"),
  rule("shipDate: years outside 0001..9999", {
    rpc: call(createOrder, { order: { shipDate: { seconds: 253402300800n, nanos: 0 } } }),
    oneEndpoint: "JSON has no such date",
    fails: { rpc: "INVALID_ARGUMENT VALIDATION_FAILED" },
  }),
];
