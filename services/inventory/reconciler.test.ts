import { Code, ConnectError } from "@connectrpc/connect";
import { beforeEach, expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { startTestService, type TestService } from "../resource/fixtures/service.ts";
import type { InventoryPeers } from "./context.ts";
import { createInventoryService } from "./service.ts";

let states: Map<bigint, OrderState>;
let asked: bigint[][];
let downFor: bigint | undefined;
let service: TestService;
beforeEach(async () => {
  [states, asked, downFor] = [new Map(), [], undefined];
  const orders = {
    async getOrderStates({ orderId }: { orderId: bigint[] }) {
      if (downFor !== undefined && orderId.includes(downFor)) throw new ConnectError("down", Code.Unavailable);
      asked.push(orderId);
      return { states: orderId.map((id) => states.get(id) ?? OrderState.UNSPECIFIED) };
    },
  };
  const pets = { applyStatuses: async () => ({ petId: [] }) };
  service = await startTestService((deps) =>
    createInventoryService(deps, { pets, orders } as unknown as InventoryPeers),
  );
});
const internal = () => service.client(InventoryInternalService);
const quantity = async (petId: bigint) =>
  (await service.client(InventoryService).getInventory({ petId })).item?.quantity;

/** A pet with ten units of which each of these orders holds one. */
async function stock(petId: bigint, ...orders: bigint[]) {
  await internal().open({ petId, listing: PetStatus.AVAILABLE });
  await service.client(InventoryService).updateInventory({ petId, inventory: { quantity: 10 } });
  for (const orderId of orders) await internal().reserve({ petId, orderId, quantity: 1 });
}

test("only an order that has ended for good has its units released", async () => {
  await stock(1n, 1n, 2n, 3n);
  states = new Map([
    [1n, OrderState.LIVE],
    [3n, OrderState.ENDED],
  ]);
  await service.runWorkers();
  expect(asked).toEqual([[1n, 2n, 3n]]);
  expect(await quantity(1n)).toBe(8);
  expect((await internal().reserve({ petId: 1n, orderId: 3n, quantity: 1 })).outcome).toBe(Outcome.FENCED);
});

test("entries without open orders are not asked about", async () => {
  await stock(1n);
  await stock(2n, 7n);
  await internal().commit({ petId: 2n, orderId: 7n });
  await service.runWorkers();
  expect(asked).toEqual([]);
});

test("one entry that can't be judged now does not hold up the others, and has its turn again", async () => {
  await stock(1n, 1n);
  await stock(2n, 2n);
  for (const order of [1n, 2n]) states.set(order, OrderState.ENDED);
  downFor = 1n;
  await service.runWorkers();
  expect(await quantity(1n)).toBe(9);
  expect(await quantity(2n)).toBe(10);
  downFor = undefined;
  await service.runWorkers();
  expect(await quantity(1n)).toBe(10);
});

test.each(["inventory.orphan-found", "inventory.released"])(
  "a crash at %s is recovered: nothing is left behind",
  async (failpoint) => {
    await stock(1n, 1n);
    states.set(1n, OrderState.ENDED);
    service.crashAt(failpoint);
    await service.runWorkers();
    expect(service.reached).toContain(failpoint);
    service.crashAt(undefined);
    await service.restart();
    await service.runWorkers();
    expect(await quantity(1n)).toBe(10);
  },
);
