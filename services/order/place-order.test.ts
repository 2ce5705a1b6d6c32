import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, describe, expect, test } from "vitest";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { failure } from "../records/fixtures/service.ts";
import { forPet, startOrders } from "./fixtures/orders.ts";

let shop: Awaited<ReturnType<typeof startOrders>>;
beforeEach(async () => {
  shop = await startOrders();
});
const place = (order: object = forPet, more: object = {}) => shop.orders.createOrder({ order, ...more });

/** Resolves what Inventory holds while an order is being placed, as if its worker had asked too early. */
function askEarly(times: number) {
  let left = times;
  shop.stock.afterReserve = async () => {
    if (left-- > 0) for (const orderId of shop.stock.held.keys()) await shop.resolve({ orderId });
  };
}

describe("an order's id", () => {
  test("is above every order that Inventory knows, which is asked once", async () => {
    shop.stock.elsewhere = 41n;
    expect(await shop.make({})).toBe(42n);
    expect(await shop.make()).toBe(43n);
    expect(shop.stock.timesAsked).toBe(1);
  });

  test("is above them under a key, too", async () => {
    shop.stock.elsewhere = 41n;
    expect((await place({}, { requestId: "key" })).order?.id).toBe(42n);
  });

  test("needs no answer, but Inventory is asked again", async () => {
    shop.stock.elsewhere = 41n;
    shop.stock.down = { call: "getHighestOrder" };
    expect(await shop.make({})).toBe(1n);
    shop.stock.down = undefined;
    expect(await shop.make({})).toBe(42n);
  });
});

describe("CreateOrder", () => {
  test("takes the units of the pet and shows what was filled in", async () => {
    const { order } = await place({ petId: 7n });
    expect(order).toMatchObject({ id: 1n, petId: 7n, quantity: 1, complete: false, etag: '"1"' });
    expect(await shop.get(1n)).toEqual(order);
    expect([...shop.stock.held]).toMatchObject([[1n, { petId: 7n, quantity: 1 }]]);
  });

  test("stores the order only after Inventory holds its units", async () => {
    const seen: unknown[] = [];
    const look = async () => void seen.push(await shop.listIds());
    Object.assign(shop.stock, { beforeReserve: look, afterReserve: look });
    await place();
    expect([...seen, await shop.listIds()]).toEqual([[], [], [1n]]);
    expect(shop.stock.asked).toEqual(["reserve 1"]);
  });

  test("gives each order a tag of its own", async () => {
    for (const _ of Array(3)) await place();
    const tags = [...shop.stock.held.values()].map(({ tag }) => tag);
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) expect(tag).toMatch(/^[\w-]{8}$/);
  });

  test("without a pet takes nothing from a stock and fills in only that it is not complete", async () => {
    const { order } = await place({});
    expect(order).toEqual(await shop.get(1n));
    expect([order?.petId, order?.quantity, order?.shipDate]).toEqual(Array(3).fill(undefined));
    expect(order?.complete).toBe(false);
    expect(shop.stock.asked).toEqual([]);
  });

  test("as complete sells the units before it is answered", async () => {
    const { order } = await place({ ...forPet, complete: true });
    expect(order).toMatchObject({ complete: true, etag: '"1"' });
    expect(shop.stock.asked).toEqual(["reserve 1", "commit 1"]);
    expect(shop.stock.sold).toEqual(new Set([1n]));
  });

  test("as complete whose units were not sold is unknown, and sold later", async () => {
    shop.stock.down = { call: "commit" };
    expect(await failure(place({ ...forPet, complete: true }))).toBe("UNAVAILABLE");
    expect(await shop.listIds({ complete: true })).toEqual([1n]);
    shop.stock.down = undefined;
    await shop.settleReservations();
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
      expect(await failure(place(order))).toBe("VALIDATION_FAILED");
      expect(await failure(shop.orders.updateOrder({ orderId: 2n ** 60n, order }))).toBe("VALIDATION_FAILED");
    },
  );

  test.each([
    [Outcome.NOT_FOUND, "PET_NOT_FOUND"],
    [Outcome.NOT_AVAILABLE, "PET_NOT_AVAILABLE"],
    [Outcome.INSUFFICIENT_STOCK, "INSUFFICIENT_STOCK"],
    [Outcome.TOO_MANY_OPEN_ORDERS, "TOO_MANY_OPEN_ORDERS"],
  ])("refused with outcome %i is %s, and nothing is stored", async (outcome, reason) => {
    shop.stock.outcome = outcome;
    expect(await failure(place())).toBe(reason);
    expect(shop.stock.asked).toEqual(["reserve 1"]);
    expect(await shop.listIds()).toEqual([]);
    expect(await shop.service.documents("orders")).toEqual([]);
  });

  test("with an outcome that is not known decides nothing", async () => {
    shop.stock.outcome = Outcome.UNSPECIFIED;
    expect(await failure(place())).toBe("UNAVAILABLE");
    expect(await failure(place(forPet, { requestId: "k" }))).toBe("UNAVAILABLE");
    expect(await shop.service.documents("orders")).toEqual([]);
  });

  test("for an id that no pet can have asks no other service, with a key and without", async () => {
    const order = { petId: 2n ** 53n };
    expect(await failure(place(order))).toBe("PET_NOT_FOUND");
    expect(await failure(place(order, { requestId: "k" }))).toBe("PET_NOT_FOUND");
    expect(await failure(place(order, { requestId: "k" }))).toBe("PET_NOT_FOUND");
    expect(shop.stock.asked).toEqual([]);
    expect(await failure(place(forPet, { requestId: "k" }))).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  test("has 3 seconds, whatever the caller would wait", async () => {
    shop.stock.beforeReserve = async () => shop.time.advance(3_000);
    expect(await failure(shop.orders.createOrder({ order: forPet }, { timeoutMs: 9_000 }))).toBe("UNAVAILABLE");
    shop.stock.beforeReserve = async () => shop.time.advance(2_999);
    expect(await failure(shop.orders.createOrder({ order: forPet }, { timeoutMs: 9_000 }))).toBeUndefined();
  });
});

describe("a reservation without its order", () => {
  test("is given back when Inventory asks about it, and its order never comes to be", async () => {
    shop.stock.down = { call: "reserve", lostReply: true };
    expect(await failure(place())).toBe("UNAVAILABLE");
    expect(shop.stock.held.size).toBe(1);
    shop.stock.down = undefined;
    await shop.settleReservations();
    expect(shop.stock.held.size).toBe(0);
    expect(await shop.listIds()).toEqual([]);
    expect(await shop.resolve({ orderId: 1n })).toEqual([OrderState.ENDED]);
  });

  test("that was asked about before the order was stored: the order is made under a fresh id", async () => {
    askEarly(1);
    const { order } = await place();
    expect(order?.id).toBe(2n);
    expect(await shop.listIds()).toEqual([2n]);
    expect([...shop.stock.held.keys()]).toEqual([2n]);
  });

  test.each([{}, { requestId: "k" }])("gives its units back before a fresh id asks for them: %j", async (more) => {
    shop.stock.units = 2;
    askEarly(1);
    expect(await failure(place(forPet, more))).toBeUndefined();
    expect(shop.stock.asked).toEqual(["reserve 1", "release 1", "reserve 2"]);
    expect(await shop.listIds()).toEqual([2n]);
  });

  test("is not followed by a fresh id while its units can't be given back", async () => {
    shop.stock.down = { call: "release" };
    askEarly(1);
    expect(await failure(place())).toBe("UNAVAILABLE");
    expect(shop.stock.asked).toEqual(["reserve 1", "release 1"]);
  });

  test("is given up after three ids", async () => {
    askEarly(9);
    expect(await failure(place())).toBe("UNAVAILABLE");
    expect(shop.stock.asked.filter((call) => call.startsWith("reserve"))).toHaveLength(3);
    expect(await shop.listIds()).toEqual([]);
    expect(shop.stock.held.size).toBe(0);
  });
});

describe("an id that is fenced at Inventory", () => {
  test("is left for a fresh one, and nothing is stored under it without a key", async () => {
    shop.stock.lowWaterMark = 1n;
    expect((await place()).order?.id).toBe(2n);
    expect(shop.stock.asked).toEqual(["reserve 1", "reserve 2"]);
    expect(await shop.service.documents("orders")).toMatchObject([{ _id: 2 }]);
  });

  test("is stored as aborted under a key, before the key names a fresh one", async () => {
    shop.stock.lowWaterMark = 1n;
    expect((await place(forPet, { requestId: "k" })).order?.id).toBe(2n);
    const [aborted] = await shop.service.documents("orders");
    expect(aborted).toMatchObject({ _id: 1, state: "ABORTED" });
    expect(aborted).not.toHaveProperty("refusal");
  });

  test.each([{}, { requestId: "k" }])("is left for one above all that Inventory knows: %j", async (more) => {
    shop.stock.lowWaterMark = 1_000n;
    expect((await place(forPet, more)).order?.id).toBe(1_001n);
  });

  test("is fenced for another tag: units of another order don't serve", async () => {
    shop.stock.held.set(1n, { petId: 7n, quantity: 1, tag: "other" });
    expect((await place()).order?.id).toBe(2n);
    expect(shop.stock.held.get(1n)?.tag).toBe("other");
  });

  test("is left three times at most", async () => {
    shop.stock.outcome = Outcome.FENCED;
    expect(await failure(place())).toBe("UNAVAILABLE");
    expect(shop.stock.asked).toEqual(["reserve 1", "reserve 2", "reserve 3"]);
    expect(await shop.listIds()).toEqual([]);
  });
});
