import { beforeEach, describe, expect, test } from "vitest";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { failure } from "../resource/fixtures/service.ts";
import { startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});

/** Crash recovery: every operation crashes at each of its failpoints, and a new process goes on. */
describe("a crash", () => {
  const create = (order: object) => () => shop.orders.createOrder({ order, requestId: "new" });
  const refuseIn = (name: string) => {
    if (name === "refuse") shop.stock.outcome = Outcome.INSUFFICIENT_STOCK;
    if (name === "foresee refusal") shop.stock.foreseen = Outcome.INSUFFICIENT_STOCK;
  };
  const operations: Record<string, (id: bigint) => Promise<unknown>> = {
    place: create({ petId: 8n }),
    "place as complete": create({ petId: 8n, complete: true }),
    refuse: create({ petId: 8n }),
    "foresee refusal": create({ petId: 8n }),
    complete: (id) => shop.complete(id),
    cancel: (orderId) => shop.orders.deleteOrder({ orderId }),
  };
  const placing = ["key.id-taken", "key.claimed", "order.placed", "order.reserved-stock", "order.settled"];
  const committing = ["order.committing", "order.committed-stock", "order.settled"];
  const releasing = ["order.releasing", "order.released-stock", "order.settled"];
  const failpoints: Record<string, string[]> = {
    place: placing,
    "place as complete": [...placing.slice(0, -1), ...committing],
    refuse: [...placing.slice(0, -1), ...releasing, "key.freeing"],
    "foresee refusal": ["key.id-taken", "key.claimed", "order.settled", "key.freeing"],
    complete: committing,
    cancel: releasing,
  };
  const cases = Object.entries(failpoints).flatMap(([name, all]) => all.map((failpoint) => [name, failpoint] as const));

  test.each(cases)("during %s at %s is recovered: nothing is stuck", async (name, failpoint) => {
    const id = await shop.make();
    refuseIn(name);
    shop.service.crashAt(failpoint);
    expect(await failure(operations[name]?.(id) as Promise<unknown>)).toBe("UNAVAILABLE");
    shop.service.crashAt(undefined);
    await shop.service.restart();
    shop.time.advance(6_000);
    await shop.service.runWorkers();
    const { orders: left } = await shop.orders.listOrders({});
    // What the orders say and what Inventory holds is the same again, and no order is left in between.
    const open = left.filter((order) => !order.complete);
    expect([...shop.stock.held.keys()].sort()).toEqual(open.map((order) => order.id).sort());
    expect(shop.stock.sold).toEqual(new Set(left.filter((order) => order.complete).map((order) => order.id)));
    if (name === "complete") expect([...shop.stock.sold]).toEqual([id]);
    if (name === "cancel") expect(left).toEqual([]);
    if (!name.startsWith("place")) return;
    await operations[name]?.(id);
    expect(await shop.listIds({ petId: 8n })).toHaveLength(1);
    expect(shop.stock.held.size + shop.stock.sold.size).toBe(2);
  });

  test.each(Object.keys(operations))("during %s has no other failpoint", async (name) => {
    const id = await shop.make();
    refuseIn(name);
    shop.service.reached.clear();
    await failure(operations[name]?.(id) as Promise<unknown>);
    expect(shop.service.reached).toEqual(new Set(failpoints[name]));
  });
});
