import { Code, ConnectError } from "@connectrpc/connect";
import { beforeEach, expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderFate } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { startTestService, type TestService } from "../resource/fixtures/service.ts";
import { createInventoryService, type Peers } from "./service.ts";

let fates: Map<bigint, OrderFate>;
let asked: bigint[][];
let downFor: bigint | undefined;
let service: TestService;
beforeEach(async () => {
  [fates, asked, downFor] = [new Map(), [], undefined];
  const orders = {
    async getOrderStates({ orderId }: { orderId: bigint[] }) {
      if (downFor !== undefined && orderId.includes(downFor)) throw new ConnectError("down", Code.Unavailable);
      asked.push(orderId);
      return { fates: orderId.map((id) => fates.get(id) ?? OrderFate.UNSPECIFIED) };
    },
  };
  const pets = { applyStatuses: async () => ({ petId: [] }) };
  service = await startTestService((deps) => createInventoryService(deps, { pets, orders } as unknown as Peers));
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

test("only an order that is over for good gives its units back", async () => {
  await stock(1n, 1n, 2n, 3n);
  fates = new Map([
    [1n, OrderFate.LIVE],
    [3n, OrderFate.OVER],
  ]);
  await service.sweep();
  expect(asked).toEqual([[1n, 2n, 3n]]);
  expect(await quantity(1n)).toBe(8);
  expect((await internal().reserve({ petId: 1n, orderId: 3n, quantity: 1 })).outcome).toBe(Outcome.FENCED);
});

test("entries without open orders are not asked about", async () => {
  await stock(1n);
  await stock(2n, 7n);
  await internal().commit({ petId: 2n, orderId: 7n });
  await service.sweep();
  expect(asked).toEqual([]);
});

test("one entry that can't be judged now does not hold up the others, and has its turn again", async () => {
  await stock(1n, 1n);
  await stock(2n, 2n);
  for (const order of [1n, 2n]) fates.set(order, OrderFate.OVER);
  downFor = 1n;
  await service.sweep();
  expect(await quantity(1n)).toBe(9);
  expect(await quantity(2n)).toBe(10);
  downFor = undefined;
  await service.sweep();
  expect(await quantity(1n)).toBe(10);
});

test.each(["inventory.orphan-found", "inventory.released"])("a crash at %s leaves nothing behind", async (point) => {
  await stock(1n, 1n);
  fates.set(1n, OrderFate.OVER);
  service.crashAt(point);
  await service.sweep();
  expect(service.reached).toContain(point);
  service.crashAt(undefined);
  await service.restart();
  await service.sweep();
  expect(await quantity(1n)).toBe(10);
});
