import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { failure } from "../resource/fixtures/service.ts";
import { forPet, startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});

describe("CreateOrder", () => {
  test("takes the units of the pet and shows what was filled in", async () => {
    const { order } = await shop.orders.createOrder({ order: { petId: 7n } });
    expect(order).toMatchObject({ id: 1n, petId: 7n, quantity: 1, complete: false, etag: '"1"' });
    expect(await shop.get(1n)).toEqual(order);
    expect(shop.stock.held).toEqual(new Map([[1n, 1]]));
  });

  test("without a pet asks no other service and fills in only that it is not complete", async () => {
    const { order } = await shop.orders.createOrder({ order: {} });
    expect(order).toEqual(await shop.get(1n));
    expect([order?.petId, order?.quantity, order?.shipDate]).toEqual(Array(3).fill(undefined));
    expect(order?.complete).toBe(false);
    expect(shop.stock.asked).toEqual([]);
  });

  test("as complete places and fulfils in one go", async () => {
    const { order } = await shop.orders.createOrder({ order: { ...forPet, complete: true } });
    expect(order).toMatchObject({ complete: true, etag: '"1"' });
    expect(shop.stock.sold).toEqual(new Set([1n]));
  });

  test("keeps the ship date to the nanosecond", async () => {
    const shipDate = { ...timestampFromMs(-62_135_596_800_000), nanos: 123_456_789 };
    expect((await shop.get(await shop.make({ shipDate })))?.shipDate).toEqual(shipDate);
  });

  test.each([-1, 1_000_000_000])(
    "refuses a ship date with %i nanoseconds, which JSON could not show",
    async (nanos) => {
      const order = { shipDate: { seconds: 5n, nanos } };
      expect(await failure(shop.orders.createOrder({ order }))).toBe("VALIDATION_FAILED");
      expect(await failure(shop.orders.updateOrder({ orderId: 2n ** 60n, order }))).toBe("VALIDATION_FAILED");
    },
  );

  test.each([
    [Outcome.NOT_FOUND, "PET_NOT_FOUND"],
    [Outcome.NOT_AVAILABLE, "PET_NOT_AVAILABLE"],
    [Outcome.INSUFFICIENT_STOCK, "INSUFFICIENT_STOCK"],
    [Outcome.TOO_MANY_OPEN_ORDERS, "TOO_MANY_OPEN_ORDERS"],
  ])("refused with outcome %i is %s, answered only when it is fenced off", async (outcome, reason) => {
    shop.stock.outcome = outcome;
    expect(await failure(shop.orders.createOrder({ order: forPet }))).toBe(reason);
    expect(shop.stock.asked).toEqual(["reserve", "release"]);
    expect(shop.stock.fenced).toEqual(new Set([1n]));
    expect(await shop.listIds()).toEqual([]);
    expect(await shop.stateOf(1n)).toBe(OrderState.ENDED);
  });

  test.each([
    [Outcome.NOT_FOUND, "PET_NOT_FOUND"],
    [Outcome.NOT_AVAILABLE, "PET_NOT_AVAILABLE"],
    [Outcome.INSUFFICIENT_STOCK, "INSUFFICIENT_STOCK"],
    [Outcome.TOO_MANY_OPEN_ORDERS, "TOO_MANY_OPEN_ORDERS"],
  ])("foreseen to be refused with outcome %i is %s, and no units are asked for", async (outcome, reason) => {
    shop.stock.foreseen = outcome;
    expect(await failure(shop.orders.createOrder({ order: forPet }))).toBe(reason);
    expect(await failure(shop.orders.createOrder({ order: forPet, requestId: "k" }))).toBe(reason);
    expect(shop.stock.asked).toEqual([]);
    // Under the key it is refused for good: another attempt under it can't place the same order after all.
    expect(await shop.stateOf(1n)).toBe(OrderState.ENDED);
  });

  test("that Inventory can't check now is not placed", async () => {
    shop.stock.checkReserve = () => Promise.reject(new ConnectError("down", Code.Unavailable));
    expect(await failure(shop.orders.createOrder({ order: forPet }))).toBe("UNAVAILABLE");
    expect(await shop.stateOf(1n)).toBe(OrderState.UNSPECIFIED);
  });

  test("with an answer that is not known is decided by the reservation", async () => {
    shop.stock.foreseen = Outcome.UNSPECIFIED;
    expect((await shop.orders.createOrder({ order: forPet })).order).toMatchObject(forPet);
  });

  test("whose refusal could not be fenced off is unknown, and refused later", async () => {
    shop.stock.outcome = Outcome.NOT_AVAILABLE;
    shop.stock.down = { call: "release" };
    expect(await failure(shop.orders.createOrder({ order: forPet }))).toBe("UNAVAILABLE");
    expect(await shop.stateOf(1n)).toBe(OrderState.LIVE);
    shop.stock.down = undefined;
    await shop.service.runWorkers();
    expect(await shop.stateOf(1n)).toBe(OrderState.ENDED);
  });

  test("with an outcome that is not known decides nothing", async () => {
    shop.stock.outcome = Outcome.UNSPECIFIED;
    expect(await failure(shop.orders.createOrder({ order: forPet }))).toBe("UNAVAILABLE");
    expect(await shop.stateOf(1n)).toBe(OrderState.LIVE);
  });

  test("for an id that no pet can have asks no other service, with a key and without", async () => {
    const order = { petId: 2n ** 53n };
    expect(await failure(shop.orders.createOrder({ order }))).toBe("PET_NOT_FOUND");
    expect(await failure(shop.orders.createOrder({ order, requestId: "k" }))).toBe("PET_NOT_FOUND");
    expect(shop.stock.asked).toEqual([]);
    const { order: second } = await shop.orders.createOrder({ order: forPet, requestId: "k" });
    expect(second).toMatchObject(forPet);
    expect(await failure(shop.orders.createOrder({ order, requestId: "k" }))).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  test("has 3 seconds, whatever the caller would wait", async () => {
    shop.stock.beforeReserve = async () => shop.time.advance(3_000);
    expect(await failure(shop.orders.createOrder({ order: forPet }, { timeoutMs: 9_000 }))).toBe("UNAVAILABLE");
    shop.stock.beforeReserve = async () => shop.time.advance(2_999);
    expect(await failure(shop.orders.createOrder({ order: forPet }, { timeoutMs: 9_000 }))).toBeUndefined();
  });
});

describe("an order that stays undecided", () => {
  test("is aborted by the recovery worker after 6 seconds, and its units are back", async () => {
    shop.stock.down = { call: "reserve", lostReply: true };
    expect(await failure(shop.orders.createOrder({ order: forPet }))).toBe("UNAVAILABLE");
    shop.time.advance(5_999);
    await shop.service.runWorkers();
    expect(shop.stock.held.size).toBe(1);
    expect(shop.stock.asked).toEqual(["reserve"]);
    shop.time.advance(1);
    await shop.service.runWorkers();
    expect(shop.stock.held.size).toBe(0);
    expect(await shop.stateOf(1n)).toBe(OrderState.ENDED);
  });

  test("and is aborted by the recovery worker in a race with its caller is placed anew under a fresh id, unseen", async () => {
    shop.stock.beforeReserve = async () => {
      shop.stock.beforeReserve = undefined;
      shop.stock.fenced.add(1n);
    };
    const { order } = await shop.orders.createOrder({ order: forPet, requestId: "k" });
    expect(order?.id).toBe(2n);
    expect(shop.stock.asked).toEqual(["reserve", "release", "reserve"]);
    expect(await shop.listIds()).toEqual([2n]);
  });

  test("is placed anew three times at most", async () => {
    shop.stock.outcome = Outcome.FENCED;
    expect(await failure(shop.orders.createOrder({ order: forPet }))).toBe("UNAVAILABLE");
    expect(shop.stock.asked.filter((call) => call === "reserve")).toHaveLength(3);
    expect(await shop.listIds()).toEqual([]);
  });
});
