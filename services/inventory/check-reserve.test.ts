import type { Doc, GetOptions, Id } from "@petstore/store/port";
import { beforeEach, expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { withReads } from "../resource/fixtures/reads.ts";
import { startTestService, type TestService } from "../resource/fixtures/service.ts";
import type { InventoryPeers } from "./context.ts";
import { createInventoryService } from "./service.ts";

/** What an ordinary read shows when it is asked of a primary that was deposed and does not know it yet. */
let outdated: Doc | undefined;
let read: GetOptions[];

function seen(_: Id, options: GetOptions): Doc | undefined {
  read.push(options);
  return options.latest ? undefined : outdated;
}

let service: TestService;
beforeEach(async () => {
  [outdated, read] = [undefined, []];
  const pets = { applyStatuses: async () => ({ petId: [] }) };
  service = await startTestService((deps) =>
    createInventoryService({ ...deps, store: withReads(deps.store, seen) }, { pets } as unknown as InventoryPeers),
  );
});
const internal = () => service.client(InventoryInternalService);
const check = async (quantity: number, petId = 1n) => (await internal().checkReserve({ petId, quantity })).outcome;
const reserve = async (orderId: bigint, quantity = 1) =>
  (await internal().reserve({ petId: 1n, orderId, quantity })).outcome;
const open = () => internal().open({ petId: 1n, listing: PetStatus.AVAILABLE });

test("CheckReserve says what Reserve would, in the same order, and takes nothing", async () => {
  const both = async (quantity: number) => {
    const foreseen = await check(quantity);
    expect([quantity, await reserve(2n ** 40n, quantity)]).toEqual([quantity, foreseen]);
    return foreseen;
  };
  expect(await both(1)).toBe(Outcome.NOT_FOUND);
  expect(await check(1, 2n ** 60n)).toBe(Outcome.NOT_FOUND);
  await open();
  expect(await both(2)).toBe(Outcome.INSUFFICIENT_STOCK);
  expect([await check(1), await check(1)]).toEqual([Outcome.OK, Outcome.OK]);
  await internal().setListing({ petId: 1n, op: 1n, listing: PetStatus.PENDING });
  expect(await both(2)).toBe(Outcome.NOT_AVAILABLE);
  await internal().setListing({ petId: 1n, op: 2n, listing: PetStatus.AVAILABLE });
  await service.client(InventoryService).updateInventory({ petId: 1n, inventory: { quantity: 1_002 } });
  for (let order = 1n; order <= 1_000n; order++) await reserve(order);
  expect(await both(3)).toBe(Outcome.INSUFFICIENT_STOCK);
  expect(await both(2)).toBe(Outcome.TOO_MANY_OPEN_ORDERS);
});

test("CheckReserve refuses only on a read that is the latest, and asks for none to say OK", async () => {
  await open();
  outdated = { _id: 1, rev: 1, state: "RETIRED" } as Doc;
  read = [];
  expect(await check(1)).toBe(Outcome.OK);
  expect(read.map(({ latest }) => latest)).toEqual([false, true]);
  [outdated, read] = [undefined, []];
  expect(await check(1)).toBe(Outcome.OK);
  expect(read.map(({ latest }) => latest)).toEqual([false]);
});
