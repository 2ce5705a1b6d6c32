import { ConnectError } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import type { PeersOf } from "../create.ts";
import { failure, startTestService, type TestService } from "../records/fixtures/service.ts";
import { createInventoryService } from "./service.ts";

const { AVAILABLE, PENDING, SOLD } = PetStatus;
const peers = { pets: { applyStatuses: async () => ({ petId: [] }) } } as unknown as PeersOf<"inventory">;

let service: TestService;
beforeEach(async () => {
  service = await startTestService((deps) => createInventoryService(deps, peers));
});
const inventory = () => service.client(InventoryService);
const internal = () => service.client(InventoryInternalService);
const open = (petId: bigint, listing: PetStatus = AVAILABLE) => internal().open({ petId, listing });
const entry = async (petId: bigint) => (await inventory().getInventory({ petId })).item;
const nowhere = [0n, -1n, 2n ** 53n, 2n ** 63n - 1n];

describe("reading", () => {
  test("an entry has a strong tag", async () => {
    await open(1n);
    expect(await entry(1n)).toMatchObject({ petId: 1n, quantity: 1, status: AVAILABLE, etag: '"1"' });
  });

  test.each(nowhere)("%i names nothing", async (petId) => {
    expect(await failure(inventory().getInventory({ petId }))).toBe("INVENTORY_NOT_FOUND");
    expect(await failure(inventory().updateInventory({ petId, inventory: { quantity: 1 } }))).toBe(
      "INVENTORY_NOT_FOUND",
    );
    expect((await inventory().batchGetInventory({ petId: [petId] })).items).toEqual([]);
    expect((await inventory().listInventory({ petId: [petId] })).items).toEqual([]);
  });

  test("what is retired, or never was opened, is visible nowhere", async () => {
    for (const petId of [1n, 2n, 3n]) await open(petId);
    await internal().retire({ petId: 2n, op: 1n });
    for (const petId of [2n, 4n]) expect(await failure(entry(petId))).toBe("INVENTORY_NOT_FOUND");
    const petId = [4n, 3n, 2n, 1n, 3n];
    const seen = ({ items }: { items: { petId: bigint }[] }) => items.map((item) => item.petId);
    expect(seen(await inventory().batchGetInventory({ petId }))).toEqual([3n, 1n]);
    expect(seen(await inventory().listInventory({}))).toEqual([3n, 1n]);
    expect(seen(await inventory().listInventory({ petId }))).toEqual([3n, 1n]);
    expect(seen(await inventory().listInventory({ petId, orderBy: "petId" }))).toEqual([1n, 3n]);
  });

  test.each([{ petId: [] }, { petId: [1n, 2n, 3n, 4n, 5n] }])(
    "pages by status, filters combined: $petId",
    async (ids) => {
      for (const petId of [1n, 2n, 3n, 4n, 5n]) await open(petId, petId === 2n ? SOLD : AVAILABLE);
      await internal().reserve({ petId: 4n, orderId: 1n, quantity: 1, tag: "a" });
      const list = async (more: object) => {
        const { items, nextPageToken } = await inventory().listInventory({ ...ids, ...more });
        return { found: items.map((item) => item.petId), nextPageToken };
      };
      expect((await list({ status: [SOLD, PENDING] })).found).toEqual([4n, 2n]);
      const first = await list({ status: [AVAILABLE], limit: 2 });
      expect(first.found).toEqual([5n, 3n]);
      const second = await list({ status: [AVAILABLE], limit: 2, pageToken: first.nextPageToken });
      expect(second).toEqual({ found: [1n], nextPageToken: "" });
      expect(await failure(list({ status: [SOLD], pageToken: first.nextPageToken }))).toBe("INVALID_PAGE_TOKEN");
    },
  );
});

describe("GetHighestOrder", () => {
  const highest = async () => (await internal().getHighestOrder({})).orderId;
  const reserve = (petId: bigint, orderId: bigint) => internal().reserve({ petId, orderId, quantity: 1, tag: "a" });
  beforeEach(async () => {
    for (const petId of [1n, 2n]) await open(petId);
  });

  test("is the highest that any entry has known, also when another process has crashed since", async () => {
    expect(await highest()).toBe(0n);
    await reserve(1n, 7n);
    await reserve(2n, 5n);
    expect(await highest()).toBe(7n);
    await internal().release({ petId: 1n, orderId: 7n });
    await internal().retire({ petId: 1n, op: 1n });
    await service.runWorkers();
    await service.restart();
    expect(await highest()).toBe(7n);
  });

  test("does not fall when a process has seen lower ones only", async () => {
    await reserve(1n, 7n);
    await internal().release({ petId: 1n, orderId: 7n });
    await service.runWorkers();
    await service.restart();
    await reserve(2n, 5n);
    await service.runWorkers();
    await service.restart();
    expect(await highest()).toBe(7n);
  });

  test("is learned again from open orders when a crash has forgotten it", async () => {
    await reserve(1n, 7n);
    await service.restart();
    await service.runWorkers();
    expect(await highest()).toBe(7n);
  });
});

describe("UpdateInventory", () => {
  const set = (quantity: number | undefined, more: object = {}) =>
    inventory().updateInventory({ petId: 1n, inventory: { quantity }, ...more });
  beforeEach(() => open(1n, SOLD));

  test("sets the stock and relists a pet that was listed as sold", async () => {
    expect((await set(10)).item).toMatchObject({ quantity: 10, status: AVAILABLE, etag: '"2"' });
  });
  test("with an empty mask changes nothing, not even the listing, but minds the revision", async () => {
    await set(5);
    await internal().setListing({ petId: 1n, op: 1n, listing: SOLD });
    const before = await entry(1n);
    const none = { updateMask: { paths: [] } };
    expect((await set(undefined, none)).item).toEqual(before);
    expect((await set(9, none)).item).toEqual(before);
    expect(await failure(set(undefined, { ...none, etag: '"1"' }))).toBe("ETAG_MISMATCH");
    expect((await set(5)).item).toMatchObject({ quantity: 5, status: AVAILABLE });
  });
  test("needs the revision it was made for", async () => {
    expect(await failure(set(10, { etag: '"7"' }))).toBe("ETAG_MISMATCH");
    expect((await set(10, { etag: '"1"' })).item?.etag).toBe('"2"');
  });
  test("leaves room for what open orders hold", async () => {
    await set(3);
    await internal().reserve({ petId: 1n, orderId: 1n, quantity: 2, tag: "a" });
    const error = await set(2 ** 31 - 2).catch(ConnectError.from);
    expect(error).toMatchObject({
      rawMessage: "inventory.quantity: must be at most 2147483645, because open orders hold 2 units",
    });
    expect(await failure(set(2 ** 31 - 2))).toBe("VALIDATION_FAILED");
    expect((await set(2 ** 31 - 3)).item?.quantity).toBe(2 ** 31 - 3);
  });
});

describe("what Pet and Order ask", () => {
  const held = { petId: 1n, orderId: 1n, quantity: 1, tag: "a" };

  test("is answered with the outcome and the status that follows", async () => {
    expect(await open(1n)).toMatchObject({ outcome: Outcome.OK, stock: { status: AVAILABLE, statusRev: 1n } });
    const listed = await internal().setListing({ petId: 1n, op: 1n, listing: PENDING });
    expect(listed).toMatchObject({ outcome: Outcome.OK, stock: { status: PENDING } });
    expect(listed.stock?.statusRev).toBeGreaterThan(1n);
    const replayed = await internal().setListing({ petId: 1n, op: 2n, listing: PENDING });
    expect(replayed.stock).toEqual(listed.stock);
    expect((await internal().setListing({ petId: 1n, op: 1n, listing: SOLD })).outcome).toBe(Outcome.STALE);
    expect(await internal().retire({ petId: 1n, op: 3n })).toMatchObject({ outcome: Outcome.OK });
    const reopened = await open(1n);
    expect(reopened.outcome).toBe(Outcome.NOT_FOUND);
    expect(reopened.stock).toBeUndefined();
  });

  test("an order is reserved, fenced, committed and released", async () => {
    const reserve = async (orderId: bigint, more: object = {}) => {
      const { outcome, highestOrderId } = await internal().reserve({ ...held, orderId, ...more });
      return outcome === Outcome.FENCED ? `fenced up to ${highestOrderId}` : outcome;
    };
    expect(await reserve(1n)).toBe(Outcome.NOT_FOUND);
    await open(1n);
    await inventory().updateInventory({ petId: 1n, inventory: { quantity: 2 } });
    expect(await reserve(1n, { quantity: 3 })).toBe(Outcome.INSUFFICIENT_STOCK);
    expect(await reserve(1n)).toBe(Outcome.OK);
    expect(await reserve(2n)).toBe(Outcome.OK);
    expect(await reserve(2n)).toBe(Outcome.OK);
    expect(await reserve(1n, { tag: "b" })).toBe("fenced up to 2");
    expect(await reserve(3n)).toBe(Outcome.NOT_AVAILABLE);
    expect((await entry(1n))?.status).toBe(PENDING);
    expect((await internal().retire({ petId: 1n, op: 1n })).outcome).toBe(Outcome.OPEN_ORDERS);
    await internal().release({ petId: 1n, orderId: 1n });
    expect(await reserve(1n)).toBe("fenced up to 2");
    await internal().commit({ petId: 1n, orderId: 2n, quantity: 1 });
    expect(await reserve(2n)).toBe("fenced up to 2");
    expect(await entry(1n)).toMatchObject({ quantity: 1, status: AVAILABLE });
  });

  test("a Commit of an order that lost its reservation takes its units, or says that there are too few", async () => {
    await open(1n);
    await inventory().updateInventory({ petId: 1n, inventory: { quantity: 2 } });
    const commit = async (quantity: number) => (await internal().commit({ petId: 1n, orderId: 1n, quantity })).outcome;
    expect(await commit(3)).toBe(Outcome.INSUFFICIENT_STOCK);
    expect([await commit(2), await commit(2)]).toEqual([Outcome.OK, Outcome.OK]);
    expect(await entry(1n)).toMatchObject({ quantity: 0, status: SOLD });
  });

  test("about an id that was never assigned is not found, and Release never refuses", async () => {
    const [petId, orderId] = [2n ** 53n, 1n];
    const outcomes = await Promise.all([
      open(petId),
      internal().reserve({ ...held, petId }),
      internal().commit({ petId, orderId, quantity: 1 }),
      internal().setListing({ petId, op: 1n, listing: SOLD }),
      internal().retire({ petId, op: 1n }),
    ]);
    for (const { outcome } of outcomes) expect(outcome).toBe(Outcome.NOT_FOUND);
    for (const id of [petId, 1n]) expect(await failure(internal().release({ petId: id, orderId }))).toBeUndefined();
  });

  test("writes nothing for an entry that never was opened", async () => {
    await internal().reserve(held);
    await internal().commit({ petId: 1n, orderId: 1n, quantity: 1 });
    await internal().release({ petId: 1n, orderId: 1n });
    expect(await service.documents("inventory")).toEqual([]);
  });

  const opened = () => open(1n);
  const reserved = () => internal().reserve(held);
  const committed = () => internal().commit({ petId: 1n, orderId: 1n, quantity: 1 });
  const released = () => internal().release({ petId: 1n, orderId: 1n });
  const listed = () => internal().setListing({ petId: 1n, op: 1n, listing: PENDING });
  const retired = () => internal().retire({ petId: 1n, op: 1n });
  test.each([
    { step: "opened", before: [], ask: opened, left: { quantity: 1, status: AVAILABLE } },
    { step: "reserved", before: [opened], ask: reserved, left: { quantity: 0, status: PENDING } },
    { step: "committed", before: [opened, reserved], ask: committed, left: { quantity: 0, status: SOLD } },
    { step: "released", before: [opened, reserved], ask: released, left: { quantity: 1, status: AVAILABLE } },
    { step: "committed", before: [opened], ask: committed, left: { quantity: 0, status: SOLD } },
    { step: "released", before: [opened], ask: released, left: { quantity: 1, status: AVAILABLE } },
    { step: "listing-set", before: [opened], ask: listed, left: { quantity: 1, status: PENDING } },
    { step: "retired", before: [opened], ask: retired, left: undefined },
  ])("a crash when it was $step changes no answer and does nothing twice", async ({ step, before, ask, left }) => {
    for (const prepare of before) await prepare();
    service.crashAt(`inventory.${step}`);
    expect(await failure(ask())).toBe("UNAVAILABLE");
    service.crashAt(undefined);
    await service.restart();
    const answer = await ask();
    expect(answer).toMatchObject("outcome" in answer ? { outcome: Outcome.OK } : {});
    expect(await ask()).toEqual(answer);
    expect(await entry(1n).catch(() => undefined)).toEqual(left && expect.objectContaining(left));
  });
});
