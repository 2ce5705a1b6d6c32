import { Code, ConnectError } from "@connectrpc/connect";
import type { Store } from "@petstore/store/port";
import { beforeEach, describe, expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import type { PeersOf } from "../create.ts";
import { startTestService, type TestService, testClock } from "../records/fixtures/service.ts";
import { createInventoryService } from "./service.ts";

const { OPEN, COMPLETE, ENDED } = OrderState;
interface Reservation {
  readonly petId: bigint;
  readonly orderId: bigint;
  readonly tag: string;
}

/** What the fake Order says of orders; of others, that they are open. */
let states: Map<bigint, OrderState>;
/** What it was asked, call by call. */
let asked: Reservation[][];
let isDown: (reservations: readonly Reservation[]) => boolean;
/** How long it takes to read a list of entries with reservations. */
let listMs: number;
let time: ReturnType<typeof testClock>;
let service: TestService;
let unsettled: (() => number) | undefined;
beforeEach(async () => {
  [states, asked, isDown, listMs, time] = [new Map(), [], () => false, 0, testClock()];
  const orders = {
    async resolveReservations({ reservations }: { reservations: Reservation[] }) {
      asked.push(reservations);
      if (isDown(reservations)) throw new ConnectError("down", Code.Unavailable);
      return { states: reservations.map(({ orderId }) => states.get(orderId) ?? OPEN) };
    },
  };
  const pets = { applyStatuses: async () => ({ petId: [] }) };
  const peers = { pets, orders } as unknown as PeersOf<"inventory">;
  const slow = (store: Store): Store => ({
    ...store,
    async collection(schema) {
      const inner = await store.collection(schema);
      const list: typeof inner.list = (...query) => {
        if (query[0].where && "hasReservations" in query[0].where) time.advance(listMs);
        return inner.list(...query);
      };
      return { ...inner, list };
    },
  });
  // The entries are read in the order of their pets.
  const random = () => 0;
  service = await startTestService(async (deps) => {
    const module = await createInventoryService({ ...deps, random, store: slow(deps.store) }, peers);
    ({ unsettled } = module.countable);
    return module;
  }, time);
});
const internal = () => service.client(InventoryInternalService);
const quantity = async (petId: bigint) =>
  (await service.client(InventoryService).getInventory({ petId })).item?.quantity;
const askedIds = () => asked.map((call) => call.map(({ orderId }) => orderId));
const reserve = async (petId: bigint, orderId: bigint) =>
  (await internal().reserve({ petId, orderId, quantity: 2, tag: `t${orderId}` })).outcome;

/** A pet with ten units beside two for each of these orders. */
async function stock(petId: bigint, ...orders: bigint[]) {
  await internal().open({ petId, listing: PetStatus.AVAILABLE });
  const units = 10 + 2 * orders.length;
  await service.client(InventoryService).updateInventory({ petId, inventory: { quantity: units } });
  for (const orderId of orders) await reserve(petId, orderId);
}
/** The workers see the reservations, and run again when they are old enough to be asked about. */
async function settle() {
  await service.runWorkers();
  time.advance(6_000);
  await service.runWorkers();
}

test("what could not be asked about is unsettled until it is known better", async () => {
  await stock(1n, 7n, 8n);
  isDown = () => true;
  await settle();
  expect(unsettled?.()).toBe(2);
  time.advance(2_000);
  await service.runWorkers(); // nothing is old enough
  expect(unsettled?.()).toBe(2);
  isDown = () => false;
  states.set(7n, ENDED);
  time.advance(6_000);
  await service.runWorkers();
  expect(unsettled?.()).toBe(0);
  isDown = () => true;
  time.advance(6_000);
  await settle(); // the two that were read before
  await settle();
  expect(unsettled?.()).toBe(1);
  await internal().release({ petId: 1n, orderId: 8n });
  await settle(); // the two that were read before
  await settle();
  expect(unsettled?.()).toBe(0);
});

test("what Order can't tell about is unsettled, and nothing becomes so by being asked about", async () => {
  await stock(1n, 7n, 8n);
  states.set(7n, OrderState.UNSPECIFIED);
  const meanwhile: unknown[] = [];
  isDown = () => {
    meanwhile.push(unsettled?.());
    return false;
  };
  await settle();
  expect(unsettled?.()).toBe(1);
  time.advance(6_000);
  await service.runWorkers();
  expect(meanwhile).toEqual([0, 1]);
});

test("one is unsettled all the time while it is among many, which take several runs", async () => {
  for (const petId of [1n, 2n, 3n])
    await stock(petId, ...Array.from({ length: 800 }, (_, i) => 1_000n * petId + BigInt(i)));
  states.set(2_010n, OrderState.UNSPECIFIED);
  await settle();
  while (!askedIds().flat().includes(2_010n)) await service.runWorkers();
  const counts = new Set<unknown>();
  asked = [];
  while (askedIds().flat().length < 6_000) {
    counts.add(unsettled?.());
    time.advance(2_000);
    await service.runWorkers();
  }
  expect(counts).toEqual(new Set([1]));
});

describe("a reservation", () => {
  test("is asked about when this process has seen it for 6 seconds", async () => {
    await stock(1n, 7n);
    time.advance(60_000);
    await service.runWorkers();
    time.advance(5_999);
    await service.runWorkers();
    expect(asked).toEqual([]);
    time.advance(1);
    await service.runWorkers();
    expect(asked).toEqual([[{ petId: 1n, orderId: 7n, tag: "t7" }]]);
  });

  test("is not older than what was read of it", async () => {
    await stock(1n, 7n);
    listMs = 2_000;
    await service.runWorkers();
    listMs = 0;
    time.advance(5_999);
    await service.runWorkers();
    expect(asked).toEqual([]);
    time.advance(1);
    await service.runWorkers();
    expect(askedIds()).toEqual([[7n]]);
  });

  test("has to be seen for 6 seconds by the next process as well", async () => {
    await stock(1n, 7n);
    await service.runWorkers();
    await service.restart();
    time.advance(6_000);
    await service.runWorkers();
    expect(asked).toEqual([]);
    time.advance(6_000);
    await service.runWorkers();
    expect(askedIds()).toEqual([[7n]]);
  });

  test("of an open order is kept, and asked about again", async () => {
    await stock(1n, 7n);
    await settle();
    await service.runWorkers();
    expect(askedIds()).toEqual([[7n]]);
    time.advance(6_000);
    await service.runWorkers();
    expect(asked).toHaveLength(2);
    expect(await quantity(1n)).toBe(10);
    expect(await reserve(1n, 7n)).toBe(Outcome.OK);
  });

  test("of a complete order is committed", async () => {
    await stock(1n, 7n);
    states.set(7n, COMPLETE);
    await settle();
    expect(await quantity(1n)).toBe(10);
    expect(await service.documents("inventory")).toMatchObject([{ reserved: 0, sold: 2, settled: ";7=C" }]);
  });

  test("of an order that has ended is released, and can't be made again", async () => {
    await stock(1n, 7n);
    states.set(7n, ENDED);
    await settle();
    expect(await quantity(1n)).toBe(12);
    expect(await reserve(1n, 7n)).toBe(Outcome.FENCED);
  });

  test("that was settled since it was seen is left alone", async () => {
    await stock(1n, 7n, 8n);
    await service.runWorkers();
    await internal().release({ petId: 1n, orderId: 7n });
    await internal().commit({ petId: 1n, orderId: 8n, quantity: 2 });
    states = new Map([
      [7n, ENDED],
      [8n, COMPLETE],
    ]);
    time.advance(6_000);
    await service.runWorkers();
    expect(askedIds()).toEqual([[7n, 8n]]);
    expect(service.reached).not.toContain("inventory.reservation-ended");
  });

  test("is kept when Order says what is not known", async () => {
    await stock(1n, 7n);
    states.set(7n, OrderState.UNSPECIFIED);
    await settle();
    expect(await reserve(1n, 7n)).toBe(Outcome.OK);
  });
});

describe("many reservations", () => {
  test("are asked about together, each settled for itself", async () => {
    await stock(1n, 1n, 2n, 3n);
    await stock(2n, 4n);
    for (const order of [1n, 4n]) states.set(order, ENDED);
    states.set(3n, COMPLETE);
    await settle();
    expect(askedIds()).toEqual([[1n, 2n, 3n, 4n]]);
    expect([await quantity(1n), await quantity(2n)]).toEqual([12, 12]);
    expect(await reserve(1n, 2n)).toBe(Outcome.OK);
  });

  test("are asked about 1,000 in a run", async () => {
    await stock(1n, ...Array.from({ length: 900 }, (_, i) => BigInt(i + 1)));
    await stock(2n, ...Array.from({ length: 150 }, (_, i) => BigInt(i + 901)));
    states.set(1_050n, ENDED);
    await settle();
    expect(asked.map(({ length }) => length)).toEqual([1_000]);
    await service.runWorkers();
    expect(asked.map(({ length }) => length)).toEqual([1_000, 50]);
    expect(await quantity(2n)).toBe(12);
  });

  test("are read and asked about once in a round, however many entries have some", async () => {
    for (let id = 1n; id <= 150n; id++) await stock(id, id);
    await settle();
    const [ids = []] = askedIds();
    expect(ids).not.toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("are read no further while many wait for their age, or be asked about", async () => {
    await stock(1n, ...Array.from({ length: 1_000 }, (_, i) => BigInt(i + 1)));
    for (let run = 0; run < 20; run++) await service.runWorkers();
    time.advance(6_000);
    for (let run = 0; run < 7; run++) await service.runWorkers();
    expect(asked.map(({ length }) => length)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
  });

  test("that can't be asked about now do not hold up the others, and have their turn again", async () => {
    await stock(1n, ...Array.from({ length: 1_000 }, (_, i) => BigInt(i + 1)));
    await stock(2n, 2_000n);
    for (const order of [1n, 2_000n]) states.set(order, ENDED);
    isDown = (reservations) => reservations.some(({ orderId }) => orderId === 1n);
    await settle();
    await service.runWorkers();
    expect([await quantity(1n), await quantity(2n)]).toEqual([10, 12]);
    isDown = () => false;
    await settle();
    await service.runWorkers();
    expect(await quantity(1n)).toBe(12);
  });

  test("are settled beside one that can't be, and the run says so", async () => {
    await stock(1n, 1n);
    await stock(2n, 2n);
    for (const order of [1n, 2n]) states.set(order, ENDED);
    await service.runWorkers();
    await service.corrupt("inventory", 1);
    time.advance(6_000);
    expect(await service.runWorkers()).toMatchObject([{ name: "Corrupt" }]);
    expect(await quantity(2n)).toBe(12);
  });

  test("are not asked about where there are none", async () => {
    await stock(1n);
    await stock(2n, 7n);
    await internal().commit({ petId: 2n, orderId: 7n, quantity: 2 });
    await settle();
    expect(asked).toEqual([]);
  });
});

test.each([
  ["inventory.reservation-ended", ENDED, 12],
  ["inventory.released", ENDED, 12],
  ["inventory.reservation-ended", COMPLETE, 10],
  ["inventory.committed", COMPLETE, 10],
])("a crash at %s is recovered: nothing is left behind (%#)", async (failpoint, state, left) => {
  await stock(1n, 7n);
  states.set(7n, state);
  service.crashAt(failpoint);
  await settle();
  expect(service.reached).toContain(failpoint);
  service.crashAt(undefined);
  await service.restart();
  await settle();
  expect(await quantity(1n)).toBe(left);
  expect(await service.documents("inventory")).toMatchObject([{ reserved: 0, openOrders: 0 }]);
});
