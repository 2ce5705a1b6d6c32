import { beforeEach, describe, expect, test } from "vitest";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { failure, startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});

/** Every operation, killed at each of its points, on new processes afterwards. */
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
  const points: Record<string, string[]> = {
    place: placing,
    "place as complete": [...placing.slice(0, -1), ...committing],
    refuse: [...placing.slice(0, -1), ...releasing, "key.freeing"],
    "foresee refusal": ["key.id-taken", "key.claimed", "order.settled", "key.freeing"],
    complete: committing,
    cancel: releasing,
  };
  const cases = Object.entries(points).flatMap(([name, all]) => all.map((point) => [name, point] as const));

  test.each(cases)("during %s at %s leaves nothing stuck", async (name, point) => {
    const id = await shop.make();
    refuseIn(name);
    shop.service.crashAt(point);
    expect(await failure(operations[name]?.(id) as Promise<unknown>)).toBe("UNAVAILABLE");
    shop.service.crashAt(undefined);
    await shop.service.restart();
    shop.time.advance(6_000);
    await shop.service.runWorkers();
    const { orders: left } = await shop.orders.listOrders({});
    // What the orders say and what Inventory holds is the same again, and nobody was left in between.
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

  test.each(Object.keys(operations))("during %s has no other point to happen at", async (name) => {
    const id = await shop.make();
    refuseIn(name);
    shop.service.reached.clear();
    await failure(operations[name]?.(id) as Promise<unknown>);
    expect(shop.service.reached).toEqual(new Set(points[name]));
  });
});
