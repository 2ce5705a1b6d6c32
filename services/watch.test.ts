/** What each of the services tells of its changes, to whom, and by which filters. */
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { PeersOf } from "./create.ts";
import { createInventoryService } from "./inventory/service.ts";
import { startOrders } from "./order/fixtures/orders.ts";
import { createPetService } from "./pet/service.ts";
import { failure, startTestService } from "./records/fixtures/service.ts";
import { brief, watching } from "./records/fixtures/watching.ts";

const { AVAILABLE, PENDING, SOLD } = PetStatus;

async function startPets() {
  let statusRev = 0n;
  let down = false;
  const retired = new Set<bigint>();
  const stock = (status: PetStatus) => ({ outcome: Outcome.OK, stock: { status, statusRev: ++statusRev } });
  const peers = {
    categories: { getCategoryState: async () => ({ state: CategoryState.ACTIVE, op: 0n }) },
    inventory: {
      open: async ({ listing }: { listing: PetStatus }) => stock(listing),
      setListing: async ({ listing }: { listing: PetStatus }) => stock(listing),
      retire: async ({ petId }: { petId: bigint }) => {
        retired.add(petId);
        if (down) throw new ConnectError("down", Code.Unavailable);
        return { outcome: Outcome.OK };
      },
    },
  } as unknown as PeersOf<"pet">;
  const service = await startTestService((deps) => createPetService(deps, peers));
  const pets = service.client(PetService);
  return {
    pets,
    retired,
    loseReplies: (are: boolean) => {
      down = are;
    },
    make: async (categoryId: bigint) => (await pets.createPet({ pet: { name: "Rex", categoryId } })).pet?.id ?? 0n,
    get: async (petId: bigint) => (await pets.getPet({ petId })).pet,
    move: (petId: bigint, categoryId: bigint) =>
      pets.updatePet({ petId, pet: { categoryId }, updateMask: { paths: ["category_id"] } }),
    rename: (petId: bigint, name: string) => pets.updatePet({ petId, pet: { name }, updateMask: { paths: ["name"] } }),
    applyStatus: (petId: bigint, status: PetStatus) =>
      service.client(PetInternalService).applyStatuses({ statuses: [{ petId, status, statusRev: ++statusRev }] }),
    watch: (request: Parameters<typeof pets.watchPets>[0]) => watching(pets.watchPets(request)),
  };
}

test("a pet is told as GETs show it, and its status follows the inventory", async () => {
  const { pets, make, get, applyStatus, watch } = await startPets();
  const changes = watch({});
  await changes.first();
  const id = await make(7n);
  const shown = [await get(id)];
  await applyStatus(id, PENDING);
  shown.push(await get(id));
  await applyStatus(id, PENDING);
  await pets.updatePet({ petId: id, pet: { name: "Max", categoryId: 8n, status: SOLD } });
  shown.push(await get(id));
  await pets.deletePet({ petId: id });
  const events = await changes.events(4);
  expect(events.map(({ pet }) => pet)).toEqual([...shown, shown[2]]);
  expect(shown.map((pet) => [pet?.status, pet?.etag])).toEqual([
    [AVAILABLE, '"1"'],
    [PENDING, '"2"'],
    [SOLD, '"3"'],
  ]);
});

test("of a category are told the pets in it, those that come, and those that leave", async () => {
  const { pets, make, move, rename, watch } = await startPets();
  const [stays, comes, other] = [await make(7n), await make(8n), await make(8n)];
  const changes = watch({ categoryId: 7n, snapshot: true });
  expect((await changes.take(3)).map(brief)).toEqual(["heartbeat", expect.stringMatching(/^PRESENT/), "synced"]);
  await rename(other, "a");
  await move(other, 9n);
  await move(comes, 7n);
  await rename(comes, "b");
  await move(comes, 8n);
  await rename(comes, "c");
  await pets.deletePet({ petId: comes });
  await pets.deletePet({ petId: stays });
  const told = (await changes.events(4)).map(({ pet }) => [pet?.id, pet?.name, pet?.categoryId]);
  expect(told).toEqual([
    [comes, "Rex", 7n],
    [comes, "b", 7n],
    [comes, "b", 8n],
    [stays, "Rex", 7n],
  ]);
});

test("of pets that were named are told those alone, in a snapshot and later", async () => {
  const { make, rename, watch } = await startPets();
  const [one, two] = [await make(7n), await make(7n)];
  const changes = watch({ petId: [two, 99n], categoryId: 7n, snapshot: true });
  expect((await changes.events(1)).map(({ pet }) => pet?.id)).toEqual([two]);
  await changes.first();
  await rename(one, "a");
  await rename(two, "b");
  expect((await changes.events(1)).map(({ pet }) => pet?.name)).toEqual(["b"]);
});

test("a snapshot finishes deletions, for others may know of them, and shows a record whose deletion is undecided", async () => {
  const { pets, make, retired, loseReplies, watch } = await startPets();
  const [one, two] = [await make(7n), await make(7n)];
  loseReplies(true);
  expect(await failure(pets.deletePet({ petId: one }))).toBe("UNAVAILABLE");
  expect(retired).toEqual(new Set([one]));
  const early = watch({ snapshot: true });
  expect((await early.take(4)).map(brief)).toEqual([
    "heartbeat",
    `PRESENT pet-${one}-3`,
    `PRESENT pet-${two}-2`,
    "synced",
  ]);
  const { resumeToken } = await watch({ snapshot: true }).first();
  loseReplies(false);
  const changes = watch({ resumeToken });
  expect((await changes.take(4)).map(brief)).toEqual([
    "heartbeat",
    `PRESENT pet-${two}-2`,
    "synced",
    expect.stringMatching(`DELETED pet-${one}-`),
  ]);
  expect((await early.take(1)).map(brief)).toEqual([expect.stringMatching(`DELETED pet-${one}-`)]);
});

test("an order is told once it is placed, when it is complete, and when it is cancelled", async () => {
  const { orders, make, complete, get, stock } = await startOrders();
  const changes = watching(orders.watchOrders({}));
  await changes.first();
  stock.outcome = Outcome.INSUFFICIENT_STOCK;
  await failure(make());
  stock.outcome = Outcome.OK;
  const [one, two] = [await make(), await make()];
  const placed = [await get(one), await get(two)];
  await complete(one);
  await orders.deleteOrder({ orderId: two });
  await make({ petId: 9n, complete: true });
  const events = await changes.events(5);
  expect(events.map(({ id }) => id)).toEqual([...new Set(events.map(({ id }) => id))]);
  expect(events.map(({ order }) => order?.id)).toEqual([one, two, one, two, 4n]);
  expect(events.slice(0, 2).map(({ order }) => order)).toEqual(placed);
  expect(events.slice(2).map(({ order }) => order)).toEqual([await get(one), placed[1], await get(4n)]);
});

test("of open orders are told those that are fulfilled once more, of complete ones those that become so", async () => {
  const { orders, make, complete } = await startOrders();
  const before = await make();
  const open = watching(orders.watchOrders({ complete: false, snapshot: true }));
  const sold = watching(orders.watchOrders({ complete: true, snapshot: true }));
  expect((await open.events(1)).map(({ order }) => order?.id)).toEqual([before]);
  expect((await sold.take(2)).map(brief)).toEqual(["heartbeat", "synced"]);
  const [one, two] = [await make(), await make({ petId: 9n, complete: true })];
  await complete(one);
  await orders.updateOrder({ orderId: one, order: { shipDate: { seconds: 1n } } });
  await orders.deleteOrder({ orderId: before });
  const of = (events: readonly { order?: { id?: bigint; complete?: boolean } | undefined }[]) =>
    events.map(({ order }) => [order?.id, order?.complete]);
  expect(of(await open.events(3))).toEqual([
    [one, false],
    [one, true],
    [before, false],
  ]);
  expect(of(await sold.events(3))).toEqual([
    [two, true],
    [one, true],
    [one, true],
  ]);
});

test("of orders for some pets are told those, in a snapshot and later, and none that names no pet", async () => {
  const { orders, make } = await startOrders();
  const [, one, two] = [await make({}), await make({ petId: 1n }), await make({ petId: 2n })];
  const changes = watching(orders.watchOrders({ petId: [1n, 2n, 2n ** 60n], snapshot: true }));
  expect((await changes.events(2)).map(({ order }) => order?.id)).toEqual([one, two]);
  await make({ petId: 3n });
  await make({});
  const last = await make({ petId: 2n });
  expect((await changes.events(1)).map(({ order }) => order?.id)).toEqual([last]);
});

test("an inventory entry is told by what its callers see of it", async () => {
  const peers = { pets: { applyStatuses: async () => ({ petId: [] }) } } as unknown as PeersOf<"inventory">;
  const service = await startTestService((deps) => createInventoryService(deps, peers));
  const [inventory, internal] = [service.client(InventoryService), service.client(InventoryInternalService)];
  const get = async () => (await inventory.getInventory({ petId: 1n })).item;
  await internal.open({ petId: 2n, listing: AVAILABLE });
  const changes = watching(inventory.watchInventory({ petId: [1n], snapshot: true }));
  expect((await changes.take(2)).map(brief)).toEqual(["heartbeat", "synced"]);
  await internal.open({ petId: 1n, listing: AVAILABLE });
  const shown = [await get()];
  await inventory.updateInventory({ petId: 2n, inventory: { quantity: 3 } });
  await inventory.updateInventory({ petId: 1n, inventory: { quantity: 2 } });
  shown.push(await get());
  await internal.reserve({ petId: 1n, orderId: 1n, quantity: 2, tag: "t" });
  shown.push(await get());
  await internal.commit({ petId: 1n, orderId: 1n, quantity: 2 });
  shown.push(await get());
  await internal.retire({ petId: 1n, op: 1n });
  const events = await changes.events(5);
  expect(events.map(({ item }) => item)).toEqual([...shown, shown[3]]);
  expect(shown.map((item) => [item?.quantity, item?.status])).toEqual([
    [1, AVAILABLE],
    [2, AVAILABLE],
    [0, PENDING],
    [0, SOLD],
  ]);
});
