import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { CreateOrderRequestSchema } from "#proto/petstore/order/v1/order_service_pb.ts";
import { failure } from "../resource/fixtures/service.ts";
import { REPLAYED_HEADER } from "../resource/idempotency-keys.ts";
import { forPet, startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});

const replayed = async (call: (options: { onHeader: (headers: Headers) => void }) => Promise<unknown>) => {
  let header: string | null = null;
  const onHeader = (headers: Headers) => {
    header = headers.get(REPLAYED_HEADER);
  };
  return [await call({ onHeader }), header === "true"];
};

describe("with a key", () => {
  const request = { order: { ...forPet, shipDate: timestampFromMs(5) }, requestId: "k" };

  test("a replay is the first answer, also when the order was changed or cancelled since", async () => {
    const [first] = await replayed((options) => shop.orders.createOrder(request, options));
    await shop.orders.updateOrder({ orderId: 1n, order: {} });
    expect(await replayed((options) => shop.orders.createOrder(request, options))).toEqual([first, true]);
    await shop.orders.deleteOrder({ orderId: 1n });
    expect(await replayed((options) => shop.orders.createOrder(request, options))).toEqual([first, true]);
    expect(shop.stock.held.size).toBe(0);
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

  test("a retry of an order placed as complete commits it first", async () => {
    const whole = { order: { ...forPet, complete: true }, requestId: "c" };
    shop.stock.down = { call: "commit" };
    expect(await failure(shop.orders.createOrder(whole))).toBe("UNAVAILABLE");
    expect(await failure(shop.orders.createOrder(whole))).toBe("UNAVAILABLE");
    shop.stock.down = undefined;
    await shop.orders.createOrder(whole);
    expect(shop.stock.sold).toEqual(new Set([1n]));
  });

  test("after an abandoned order makes another", async () => {
    shop.stock.down = { call: "reserve", lostReply: true };
    await failure(shop.orders.createOrder(request));
    shop.time.advance(6_000);
    shop.stock.down = undefined;
    await shop.service.runWorkers();
    expect(await shop.listIds()).toEqual([]);
    const { order } = await shop.orders.createOrder(request);
    expect(await shop.listIds()).toEqual([order?.id]);
    expect([...shop.stock.held.keys()]).toEqual([order?.id]);
  });

  test("a refusal frees the key for any order", async () => {
    shop.stock.outcome = Outcome.INSUFFICIENT_STOCK;
    expect(await failure(shop.orders.createOrder(request))).toBe("INSUFFICIENT_STOCK");
    shop.stock.outcome = Outcome.OK;
    const { order } = await shop.orders.createOrder({ order: { petId: 8n }, requestId: "k" });
    expect(order?.petId).toBe(8n);
  });

  test.each([
    ["a refusal", Outcome.INSUFFICIENT_STOCK, Outcome.OK, "INSUFFICIENT_STOCK"],
    ["an order", Outcome.OK, Outcome.INSUFFICIENT_STOCK, undefined],
  ])(
    "%s that is written first holds for a concurrent attempt that foresees another end",
    async (_, first, second, reason) => {
      const foreseen = [first, second].map((outcome) => ({ outcome, answered: Promise.withResolvers<void>() }));
      let asked = 0;
      shop.stock.checkReserve = async () => {
        const answer = foreseen[asked++] ?? expect.unreachable("asked once too often");
        await answer.answered.promise;
        return { outcome: answer.outcome };
      };
      const attempts = [shop.orders.createOrder(request), shop.orders.createOrder(request)].map(failure);
      await vi.waitUntil(() => asked === 2, { timeout: 50_000 });
      foreseen[0]?.answered.resolve();
      await Promise.race(attempts);
      foreseen[1]?.answered.resolve();
      expect(await Promise.all(attempts)).toEqual([reason, reason]);
      expect(shop.stock.asked).toEqual(reason ? [] : ["reserve"]);
      expect(await shop.listIds()).toEqual(reason ? [] : [1n]);
    },
  );

  test("a refusal is not answered before it is fenced off", async () => {
    shop.stock.outcome = Outcome.NOT_AVAILABLE;
    shop.stock.down = { call: "release" };
    await failure(shop.orders.createOrder(request));
    const other = { order: { petId: 8n }, requestId: "k" };
    expect(await failure(shop.orders.createOrder(other))).toBe("IDEMPOTENCY_IN_PROGRESS");
    shop.stock.down = undefined;
    expect(await failure(shop.orders.createOrder(request))).toBe("PET_NOT_AVAILABLE");
  });

  test("another order is refused while the first is undecided, and fences off the first when that is unwritten", async () => {
    shop.stock.down = { call: "reserve" };
    await failure(shop.orders.createOrder(request));
    const other = { order: { petId: 8n }, requestId: "k" };
    expect(await failure(shop.orders.createOrder(other))).toBe("IDEMPOTENCY_IN_PROGRESS");
    shop.stock.down = undefined;
    shop.service.crashAt("key.claimed");
    await failure(shop.orders.createOrder({ ...request, requestId: "l" }));
    shop.service.crashAt(undefined);
    await shop.service.restart();
    const { order } = await shop.orders.createOrder({ ...other, requestId: "l" });
    const missing = (order?.id ?? 0n) - 1n;
    expect(await shop.stateOf(missing)).toBe(OrderState.ENDED);
  });
});
