import { beforeEach, describe, expect, test } from "vitest";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { failure } from "../records/fixtures/service.ts";
import { startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});

/** Crash recovery: every operation crashes at each of its failpoints, and a new process goes on. */
describe("a crash", () => {
  const create = (order: object) => () => shop.orders.createOrder({ order, requestId: "new" });
  /** Inventory asks about the reservation of the new order before that is stored. */
  const askEarly = async () => {
    shop.stock.afterReserve = undefined;
    await shop.resolve({ orderId: 2n, petId: 8n });
  };
  const prepare = (name: string) => {
    if (name === "refuse") shop.stock.outcome = Outcome.INSUFFICIENT_STOCK;
    if (name === "place anew") shop.stock.afterReserve = askEarly;
    if (name === "place above the fence") shop.stock.lowWaterMark = 2n;
  };
  const operations: Record<string, (id: bigint) => Promise<unknown>> = {
    place: create({ petId: 8n }),
    "place as complete": create({ petId: 8n, complete: true }),
    "place anew": create({ petId: 8n }),
    "place above the fence": create({ petId: 8n }),
    "place without a key": () => shop.orders.createOrder({ order: { petId: 8n } }),
    refuse: create({ petId: 8n }),
    complete: (id) => shop.complete(id),
    cancel: (orderId) => shop.orders.deleteOrder({ orderId }),
  };
  const placing = ["key.id-taken", "key.claimed", "order.reserved-stock", "order.stored"];
  const committing = ["order.complete", "order.committed-stock"];
  const releasing = ["order.ended", "order.released-stock"];
  const failpoints: Record<string, string[]> = {
    place: placing,
    "place as complete": [...placing, ...committing],
    "place anew": [...placing, ...releasing],
    "place above the fence": [...placing, ...releasing],
    "place without a key": placing.filter((failpoint) => failpoint !== "key.claimed"),
    refuse: placing,
    complete: committing,
    cancel: releasing,
  };
  const cases = Object.entries(failpoints).flatMap(([name, all]) => all.map((failpoint) => [name, failpoint] as const));

  test.each(cases)("during %s at %s is recovered: nothing is stuck", async (name, failpoint) => {
    const id = await shop.make();
    prepare(name);
    shop.service.crashAt(failpoint);
    expect(await failure(operations[name]?.(id) as Promise<unknown>)).toBe("UNAVAILABLE");
    shop.service.crashAt(undefined);
    await shop.service.restart();
    await shop.settleReservations();
    await shop.service.runWorkers();
    const { orders: left } = await shop.orders.listOrders({});
    // What the orders say and what Inventory holds is the same again, and no order is left in between.
    const open = left.filter((order) => !order.complete);
    expect([...shop.stock.held.keys()].sort()).toEqual(open.map((order) => order.id).sort());
    expect(shop.stock.sold).toEqual(new Set(left.filter((order) => order.complete).map((order) => order.id)));
    if (name === "complete") expect([...shop.stock.sold]).toEqual([id]);
    if (name === "cancel") expect(left).toEqual([]);
    if (!name.startsWith("place") || name === "place without a key") return;
    await operations[name]?.(id);
    expect(await shop.listIds({ petId: 8n })).toHaveLength(1);
    expect(shop.stock.held.size + shop.stock.sold.size).toBe(2);
  });

  test.each(Object.keys(operations))("during %s has no other failpoint", async (name) => {
    const id = await shop.make();
    prepare(name);
    shop.service.reached.clear();
    await failure(operations[name]?.(id) as Promise<unknown>);
    expect(shop.service.reached).toEqual(new Set(failpoints[name]));
  });
});
