import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { CreateOrderRequestSchema } from "#proto/petstore/order/v1/order_service_pb.ts";
import { failure } from "../records/fixtures/service.ts";
import { REPLAYED_HEADER } from "../records/idempotency-keys.ts";
import { forPet, startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});

type Request = Parameters<typeof shop.orders.createOrder>[0];
/** The answer, or the reason and message of the refusal, and whether the header says that it is a replay. */
async function replayed(request: Request): Promise<[unknown, boolean]> {
  let header: string | null = null;
  const onHeader = (headers: Headers) => {
    header = headers.get(REPLAYED_HEADER);
  };
  try {
    return [await shop.orders.createOrder(request, { onHeader }), header === "true"];
  } catch (error) {
    const { rawMessage, metadata } = ConnectError.from(error);
    return [rawMessage, metadata.get(REPLAYED_HEADER) === "true"];
  }
}

describe("with a key", () => {
  const request = { order: { ...forPet, shipDate: timestampFromMs(5) }, requestId: "k" };
  const other = { order: { petId: 8n }, requestId: "k" };

  test("a replay is the first answer, also when the order was changed or cancelled since", async () => {
    const [first] = await replayed(request);
    await shop.orders.updateOrder({ orderId: 1n, order: {} });
    expect(await replayed(request)).toEqual([first, true]);
    await shop.orders.deleteOrder({ orderId: 1n });
    expect(await replayed(request)).toEqual([first, true]);
    expect(shop.stock.held.size).toBe(0);
  });

  test("a replay asks Inventory nothing", async () => {
    await replayed(request);
    shop.stock.asked.length = 0;
    await replayed(request);
    expect(shop.stock.asked).toEqual([]);
  });

  test("without a pet too", async () => {
    const empty = create(CreateOrderRequestSchema, { order: {}, requestId: "e" });
    const first = await shop.orders.createOrder(empty);
    await shop.complete(first.order?.id ?? 0n);
    expect(await shop.orders.createOrder(empty)).toEqual(first);
    const explicit = { order: { complete: false }, requestId: "e" };
    expect(await failure(shop.orders.createOrder(explicit))).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  test("a retry after a lost reply finishes the same order", async () => {
    shop.stock.down = { call: "reserve", lostReply: true };
    expect(await failure(shop.orders.createOrder(request))).toBe("UNAVAILABLE");
    shop.stock.down = undefined;
    expect((await shop.orders.createOrder(request)).order?.id).toBe(1n);
    expect(shop.stock.held.size).toBe(1);
  });

  test("a retry by another process finds the units held for the same order", async () => {
    shop.service.crashAt("order.reserved-stock");
    await failure(shop.orders.createOrder(request));
    shop.service.crashAt(undefined);
    await shop.service.restart();
    shop.stock.outcome = Outcome.NOT_AVAILABLE;
    expect((await shop.orders.createOrder(request)).order?.id).toBe(1n);
  });

  test("a retry of an order placed as complete sells its units first", async () => {
    const whole = { order: { ...forPet, complete: true }, requestId: "c" };
    shop.stock.down = { call: "commit" };
    expect(await failure(shop.orders.createOrder(whole))).toBe("UNAVAILABLE");
    expect(await failure(shop.orders.createOrder(whole))).toBe("UNAVAILABLE");
    shop.stock.down = undefined;
    await shop.orders.createOrder(whole);
    expect(shop.stock.sold).toEqual(new Set([1n]));
  });

  test("a retry after Inventory asked about its reservation makes the order under a fresh id", async () => {
    shop.stock.units = 2;
    shop.stock.down = { call: "reserve", lostReply: true };
    await failure(shop.orders.createOrder(request));
    shop.stock.down = undefined;
    await shop.settleReservations();
    expect(await shop.listIds()).toEqual([]);
    const { order } = await shop.orders.createOrder(request);
    expect(await shop.listIds()).toEqual([order?.id]);
    expect([...shop.stock.held.keys()]).toEqual([order?.id]);
  });

  test.each([
    [Outcome.NOT_FOUND, "No pet has the id 7."],
    [Outcome.NOT_AVAILABLE, "Pet 7 is not available now. Order it when its status is available again."],
    [Outcome.INSUFFICIENT_STOCK, "Pet 7 has fewer than 2 units in stock. Order less."],
    [Outcome.TOO_MANY_OPEN_ORDERS, "Pet 7 has as many open orders as it can have. Complete or delete some first."],
  ])("a refusal with outcome %i is answered again, also when it would be accepted by now", async (outcome, message) => {
    shop.stock.outcome = outcome;
    expect(await replayed(request)).toEqual([message, false]);
    shop.stock.outcome = Outcome.OK;
    expect(await replayed(request)).toEqual([message, true]);
    await shop.service.restart();
    expect(await replayed(request)).toEqual([message, true]);
    expect(shop.stock.asked).toEqual(["reserve 1"]);
    expect(await shop.listIds()).toEqual([]);
  });

  test("a refusal is not answered before it is stored", async () => {
    shop.stock.outcome = Outcome.NOT_AVAILABLE;
    shop.service.crashAt("order.reserved-stock");
    expect(await failure(shop.orders.createOrder(request))).toBe("UNAVAILABLE");
    shop.service.crashAt(undefined);
    await shop.service.restart();
    shop.stock.outcome = Outcome.OK;
    expect(await failure(shop.orders.createOrder(request))).toBeUndefined();
  });

  test("another order is refused at once, whatever becomes of the first", async () => {
    shop.stock.down = { call: "reserve" };
    await failure(shop.orders.createOrder(request));
    expect(await failure(shop.orders.createOrder(other))).toBe("IDEMPOTENCY_KEY_REUSED");
    shop.stock.down = undefined;
    shop.stock.outcome = Outcome.NOT_FOUND;
    expect(await failure(shop.orders.createOrder(request))).toBe("PET_NOT_FOUND");
    expect(await failure(shop.orders.createOrder(other))).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  test.each([
    ["a refusal", Outcome.INSUFFICIENT_STOCK, Outcome.OK, "INSUFFICIENT_STOCK"],
    ["an order", Outcome.OK, Outcome.INSUFFICIENT_STOCK, undefined],
  ])("%s that is stored first is the answer to both of two concurrent attempts", async (_, first, second, reason) => {
    const turns = [first, second].map((outcome) => ({ outcome, begun: Promise.withResolvers<void>() }));
    let asked = 0;
    shop.stock.beforeReserve = async () => {
      const { outcome, begun } = turns[asked++] ?? expect.unreachable("asked once too often");
      await begun.promise;
      shop.stock.outcome = outcome;
    };
    const attempts = [shop.orders.createOrder(request), shop.orders.createOrder(request)].map(failure);
    await vi.waitUntil(() => asked === 2, { timeout: 50_000 });
    turns[0]?.begun.resolve();
    await Promise.race(attempts);
    turns[1]?.begun.resolve();
    expect(await Promise.all(attempts)).toEqual([reason, reason]);
    expect(await shop.listIds()).toEqual(reason ? [] : [1n]);
    await shop.settleReservations();
    expect([...shop.stock.held.keys()]).toEqual(reason ? [] : [1n]);
  });
});
