import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { reasonOf } from "#errors";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { failure } from "../records/fixtures/service.ts";
import { watching } from "../records/fixtures/watching.ts";
import { forPet, startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});

/** Every way to read an order; each resolves to the ids that it shows. */
const readings = (id: bigint) => [
  () => shop.get(id).then((order) => [order?.id], none),
  async () => (await shop.orders.batchGetOrders({ orderId: [id] })).orders.map((order) => order.id),
  () => shop.listIds({ id: [id] }),
  () => shop.listIds(),
  () => shop.listIds({ petId: 7n, complete: false }),
];
const none = (error: ConnectError) => {
  if (reasonOf(error)?.reason !== "ORDER_NOT_FOUND") throw error;
  return [];
};

describe("UpdateOrder", () => {
  test("to complete is answered after Inventory has booked it; repeating it changes nothing", async () => {
    const id = await shop.make();
    const { order } = await shop.complete(id);
    expect(order).toMatchObject({ ...forPet, complete: true, etag: '"2"' });
    expect(shop.stock.sold).toEqual(new Set([id]));
    expect((await shop.complete(id)).order).toEqual(order);
    expect(shop.stock.sold).toEqual(new Set([id]));
  });

  test("that does not complete the order asks Inventory nothing", async () => {
    const id = await shop.make();
    await shop.orders.updateOrder({ orderId: id, order: { shipDate: timestampFromMs(1) } });
    expect(shop.stock.asked).toEqual(["reserve 1"]);
  });

  test("to complete is stored before Inventory sells the units", async () => {
    const id = await shop.make();
    shop.service.crashAt("order.complete");
    expect(await failure(shop.complete(id))).toBe("UNAVAILABLE");
    expect(shop.stock.sold.size).toBe(0);
    shop.service.crashAt(undefined);
    expect(await shop.get(id)).toMatchObject({ complete: true });
  });

  test("that did not reach Inventory is unknown, decided all the same, and advanced by a repeat", async () => {
    const id = await shop.make();
    shop.stock.down = { call: "commit" };
    expect(await failure(shop.complete(id))).toBe("UNAVAILABLE");
    expect(await shop.get(id)).toMatchObject({ complete: true, etag: '"2"' });
    expect(await failure(shop.orders.deleteOrder({ orderId: id }))).toBe("ORDER_COMPLETE");
    expect(await failure(shop.complete(id))).toBe("UNAVAILABLE");
    shop.stock.down = undefined;
    expect((await shop.complete(id)).order?.etag).toBe('"2"');
    expect(shop.stock.sold).toEqual(new Set([id]));
  });

  test("that did not reach Inventory is finished when Inventory asks", async () => {
    const id = await shop.make();
    shop.stock.down = { call: "commit" };
    await failure(shop.complete(id));
    shop.stock.down = undefined;
    await shop.settleReservations();
    expect(shop.stock.sold).toEqual(new Set([id]));
    expect((await shop.get(id))?.etag).toBe('"2"');
  });

  test("to complete says so when Inventory lost the reservation and has too few units", async () => {
    const id = await shop.make();
    shop.stock.held.clear();
    shop.stock.units = 1;
    const { rawMessage } = await shop.complete(id).then(() => expect.unreachable("completed"), ConnectError.from);
    expect(rawMessage).toContain("The inventory of pet 7 does not know this order and has too few units for it");
    shop.stock.units = 2;
    expect((await shop.complete(id)).order).toMatchObject({ complete: true });
    expect(shop.stock.units).toBe(0);
  });

  test("without a mask removes an absent ship date and leaves the rest; with one it does what the mask names", async () => {
    const shipDate = timestampFromMs(1_000);
    const id = await shop.make({ ...forPet, shipDate });
    const masked = (paths: string[], order: object) =>
      shop.orders.updateOrder({ orderId: id, order, updateMask: { paths } });
    expect((await masked([], { complete: true })).order).toMatchObject({ complete: false, etag: '"1"' });
    expect((await masked(["complete"], { complete: false })).order).toMatchObject({ shipDate, etag: '"1"' });
    expect((await masked(["ship_date"], {})).order?.shipDate).toBeUndefined();
    await masked(["ship_date"], { shipDate });
    const { order } = await shop.orders.updateOrder({ orderId: id, order: {} });
    expect(order?.shipDate).toBeUndefined();
    expect(order).toMatchObject({ ...forPet, complete: false, etag: '"4"' });
  });

  test("changes neither pet nor quantity, and ignores those that the mask leaves out", async () => {
    const id = await shop.make();
    const change = (order: object, paths?: string[]) =>
      shop.orders.updateOrder({ orderId: id, order, ...(paths && { updateMask: { paths } }) });
    expect(await failure(change({ petId: 8n }))).toBe("ORDER_FIXED");
    expect(await failure(change({ quantity: 3 }, ["quantity"]))).toBe("ORDER_FIXED");
    expect(await failure(change({ petId: 8n, quantity: 3 }, ["ship_date"]))).toBeUndefined();
    expect(await failure(change(forPet))).toBeUndefined();
    await shop.complete(id);
    expect(await failure(change({ petId: 8n, complete: false }))).toBe("ORDER_COMPLETE");
    expect((await change({ shipDate: timestampFromMs(1) })).order).toMatchObject({ complete: true, etag: '"3"' });
  });
});

describe("DeleteOrder", () => {
  test("gives the units back; the order is gone", async () => {
    const id = await shop.make();
    await shop.orders.deleteOrder({ orderId: id, etag: '"1"' });
    expect(shop.stock.held.size).toBe(0);
    for (const read of readings(id)) expect(await read()).toEqual([]);
    expect(await failure(shop.complete(id))).toBe("ORDER_NOT_FOUND");
    expect(await failure(shop.orders.deleteOrder({ orderId: id }))).toBe("ORDER_NOT_FOUND");
  });

  test("without a pet needs no other service", async () => {
    await shop.orders.deleteOrder({ orderId: await shop.make({}) });
    expect(shop.stock.asked).toEqual([]);
    expect(await shop.listIds()).toEqual([]);
  });

  test("is stored before Inventory gets the units back", async () => {
    const id = await shop.make();
    shop.service.crashAt("order.ended");
    expect(await failure(shop.orders.deleteOrder({ orderId: id }))).toBe("UNAVAILABLE");
    expect([...shop.stock.held.keys()]).toEqual([id]);
    shop.service.crashAt(undefined);
    for (const read of readings(id)) expect(await read()).toEqual([]);
  });

  test("that did not reach Inventory is unknown, and the order is gone; its units are back when Inventory asks", async () => {
    const [id, other] = [await shop.make(), await shop.make()];
    shop.stock.down = { call: "release" };
    expect(await failure(shop.orders.deleteOrder({ orderId: id }))).toBe("UNAVAILABLE");
    const shown = [[], [], [], [other], [other]];
    expect(await Promise.all(readings(id).map((read) => read()))).toEqual(shown);
    expect(await failure(shop.complete(id))).toBe("ORDER_NOT_FOUND");
    expect(await failure(shop.orders.deleteOrder({ orderId: id, etag: '"9"' }))).toBe("ORDER_NOT_FOUND");
    shop.stock.down = undefined;
    await shop.settleReservations();
    expect([...shop.stock.held.keys()]).toEqual([other]);
  });

  test("of a complete order is refused", async () => {
    const id = await shop.make({ ...forPet, complete: true });
    expect(await failure(shop.orders.deleteOrder({ orderId: id }))).toBe("ORDER_COMPLETE");
    expect(await failure(shop.orders.deleteOrder({ orderId: id, etag: '"9"' }))).toBe("ETAG_MISMATCH");
  });
});

describe("reading", () => {
  test("shows of each whether it is complete, also in events", async () => {
    const watch = watching(shop.orders.watchOrders({ snapshot: true }));
    await watch.take(2);
    const sent = { order: { quantity: 3 }, requestId: "k" };
    const { order } = await shop.orders.createOrder(sent);
    const id = order?.id ?? 0n;
    await shop.orders.updateOrder({ orderId: id, order: {} });
    await shop.orders.deleteOrder({ orderId: id });
    const [other] = [await shop.make({})];
    const events = [
      ...(await watch.events(3)),
      ...(await watching(shop.orders.watchOrders({ snapshot: true })).events(1)),
    ];
    const [{ orders: batch }, { orders: list }] = [
      await shop.orders.batchGetOrders({ orderId: [other] }),
      await shop.orders.listOrders({}),
    ];
    const told = events.map((event) => event.order);
    const replay = (await shop.orders.createOrder(sent)).order;
    const all = [order, await shop.get(other), ...batch, ...list, ...told, replay];
    expect(all.map((one) => one?.complete)).toEqual(Array(9).fill(false));
    expect(replay).toEqual(order);
  });

  test("filters by pet and by completeness, where absent counts as false", async () => {
    const none = await shop.make({});
    const open = await shop.make();
    const done = await shop.make({ ...forPet, complete: true });
    const other = await shop.make({ petId: 8n });
    expect(await shop.listIds()).toEqual([other, done, open, none]);
    expect(await shop.listIds({ complete: false })).toEqual([other, open, none]);
    expect(await shop.listIds({ petId: 7n })).toEqual([done, open]);
    expect(await shop.listIds({ petId: 7n, complete: true, orderBy: "id" })).toEqual([done]);
    expect(await shop.listIds({ id: [open, none, 99n], petId: 7n })).toEqual([open]);
    expect(await shop.listIds({ id: [open, done], complete: true })).toEqual([done]);
    for (const petId of [0n, -1n, 2n ** 53n]) {
      expect(await shop.listIds({ petId })).toEqual([]);
      expect(await shop.listIds({ petId, id: [none, open] })).toEqual([]);
    }
  });

  test("goes on where the page before ended, with the same filters only", async () => {
    const ids = [await shop.make(), await shop.make(), await shop.make()].reverse();
    const first = await shop.orders.listOrders({ limit: 2, petId: 7n });
    const pageToken = first.nextPageToken;
    expect(first.orders.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(await shop.listIds({ limit: 2, petId: 7n, pageToken })).toEqual(ids.slice(2));
    expect(await failure(shop.orders.listOrders({ pageToken, petId: 7n, complete: false }))).toBe("INVALID_PAGE_TOKEN");
  });

  test("a batch comes in the order asked, each once, without those that are invisible", async () => {
    const [a, b, cancelled] = [await shop.make(), await shop.make({}), await shop.make()];
    await shop.orders.deleteOrder({ orderId: cancelled });
    const { orders: found } = await shop.orders.batchGetOrders({ orderId: [b, cancelled, 99n, a, b, 2n ** 62n] });
    expect(found.map(({ id }) => id)).toEqual([b, a]);
    expect(await shop.listIds({ id: [b, cancelled, a] })).toEqual([b, a]);
  });

  test.each([0n, -1n, 99n, 2n ** 53n, 2n ** 63n - 1n])("%i names nothing", async (orderId) => {
    expect(await failure(shop.orders.getOrder({ orderId }))).toBe("ORDER_NOT_FOUND");
    expect(await failure(shop.orders.deleteOrder({ orderId }))).toBe("ORDER_NOT_FOUND");
    expect(await failure(shop.complete(orderId))).toBe("ORDER_NOT_FOUND");
  });
});

describe("ResolveReservations", () => {
  const { ENDED, OPEN, COMPLETE } = OrderState;

  test("says what has become of each order, in the order asked", async () => {
    const [open, gone, done] = [await shop.make(), await shop.make(), await shop.make()];
    const tags = new Map([...shop.stock.held].map(([orderId, { tag }]) => [orderId, tag]));
    await shop.orders.deleteOrder({ orderId: gone });
    await shop.complete(done);
    const asked = [gone, open, done, gone].map((orderId) => ({ orderId, tag: tags.get(orderId) ?? "" }));
    expect(await shop.resolve(...asked)).toEqual([ENDED, OPEN, COMPLETE, ENDED]);
  });

  test("stores an order that does not exist as aborted before it says that it has ended", async () => {
    expect(await shop.resolve({ orderId: 99n, tag: "t" })).toEqual([ENDED]);
    const [aborted] = await shop.service.documents("orders");
    expect(aborted).toMatchObject({ _id: 99, state: "ABORTED", version: 1 });
    expect(aborted).not.toHaveProperty("refusal");
    expect(aborted).not.toHaveProperty("visible");
    expect(await shop.listIds()).toEqual([]);
  });

  test("answers by the order that was stored after it found none", async () => {
    const reserved = Promise.withResolvers<void>();
    shop.stock.afterReserve = () => reserved.promise;
    const made = shop.make();
    shop.reads.afterGetMany = async () => {
      reserved.resolve();
      await made;
    };
    await vi.waitUntil(() => shop.stock.held.size > 0, { timeout: 50_000 });
    expect([await shop.resolve({ orderId: 1n }), await made]).toEqual([[OPEN], 1n]);
    expect(await shop.get(1n)).toMatchObject(forPet);
  });

  test.each([
    ["pet", { petId: 8n }],
    ["tag", { tag: "other" }],
  ])("is ENDED for units of another order with that id, by its %s", async (_, more) => {
    const [open, done] = [await shop.make(), await shop.make({ ...forPet, complete: true })];
    for (const orderId of [open, done]) expect(await shop.resolve({ orderId, ...more })).toEqual([ENDED]);
    expect(await shop.get(open)).toMatchObject(forPet);
  });

  test("leaves open what it can't find out, and fails when that is all", async () => {
    const [open, damaged] = [await shop.make(), await shop.make()];
    await shop.service.corrupt("orders", Number(damaged));
    expect(await shop.resolve({ orderId: damaged }, { orderId: open })).toEqual([OrderState.UNSPECIFIED, OPEN]);
    expect(await failure(shop.resolve({ orderId: damaged }))).toBe("INTERNAL");
    expect(await shop.resolve()).toEqual([]);
  });

  test("is ENDED for units that are held for an order without a pet", async () => {
    expect(await shop.resolve({ orderId: await shop.make({}), tag: "" })).toEqual([ENDED]);
  });
});
