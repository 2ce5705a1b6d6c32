import { setImmediate as idle } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Store } from "@petstore/store/port";
import type { Tracing } from "@petstore/trace/tracing";
import { pino } from "pino";
import { beforeEach, describe, expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryInternalService } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { recordedTracing } from "../../packages/trace/fixtures/recorded.ts";
import type { PeersOf } from "../create.ts";
import { startTestService, type TestService, testClock } from "../records/fixtures/service.ts";
import { INVENTORY } from "./model.ts";
import { createPublisher } from "./outbox-publisher.ts";
import { createInventoryService } from "./service.ts";

const { AVAILABLE, PENDING, SOLD } = PetStatus;
interface PublishedStatus {
  readonly petId: bigint;
  readonly status: PetStatus;
  readonly statusRev: bigint;
}

/** A Pet that remembers what it received, and can be down or slow, or unable to change some pets. */
let pet: {
  received: PublishedStatus[];
  calls: number;
  most: number;
  down: boolean;
  slow: Promise<void> | undefined;
  broken: bigint[];
  kept: PublishedStatus[];
};
let service: TestService;
let store: Store;
let writing: { now: number; most: number };
beforeEach(async () => {
  pet = { received: [], calls: 0, most: 0, down: false, slow: undefined, broken: [], kept: [] };
  const pets = {
    async applyStatuses({ statuses }: { statuses: PublishedStatus[] }) {
      if (pet.down) throw new ConnectError("down", Code.Unavailable);
      pet.calls++;
      pet.most = Math.max(pet.most, statuses.length);
      const applied = statuses.filter(({ petId }) => !pet.broken.includes(petId));
      pet.received.push(...applied);
      await pet.slow;
      return { petId: applied.map(({ petId }) => petId), kept: pet.kept };
    },
  };
  writing = { now: 0, most: 0 };
  service = await startTestService((deps) => {
    store = deps.store;
    return createInventoryService({ ...deps, store: counted(store) }, { pets } as unknown as PeersOf<"inventory">);
  });
});
/** The same store, which notes how many changes it is asked for at the same time. */
const counted = (inner: Store): Store => ({
  ...inner,
  async collection(schema) {
    const collection = await inner.collection(schema);
    return {
      ...collection,
      async update(...args) {
        writing.most = Math.max(writing.most, ++writing.now);
        const result = await collection.update(...args);
        writing.now--;
        return result;
      },
    };
  },
});
const internal = () => service.client(InventoryInternalService);
/** An entry with a unit, which came in after it was opened: Pet knows the status of a new entry. */
async function open(petId: bigint) {
  await internal().open({ petId, listing: SOLD });
  await set(petId, 1);
}
const reserve = (petId: bigint) => internal().reserve({ petId, orderId: 1n, quantity: 1, tag: "t" });
const set = (petId: bigint, quantity: number) =>
  service.client(InventoryService).updateInventory({ petId, inventory: { quantity } });
const received = () => pet.received.map(({ status }) => status);
// Store and Pet answer without leaving the turn of the event loop: when the next one comes, the publisher is at rest.

/** Runs the workers and returns what they published: only what is still in the outbox. */
const runWorkers = async () => {
  const before = pet.received.length;
  await service.runWorkers();
  return pet.received.slice(before);
};

const entry = (_id: number, statusRev = 1) => ({ _id, status: "available", statusRev }) as const;
/** A publisher of these entries, which are never at rest. */
function publisherTo(pets: object, pending: readonly object[] = [], tracing?: Tracing) {
  const { clock } = testClock();
  const log = pino({ level: "silent" });
  const entries = {
    list: async ({ after = 0 }) => (after < pending.length ? pending : []),
    update: async () => {},
  };
  const context = { clock, random: () => 0, log, failpoint: () => {}, pets, entries, tracing };
  return createPublisher(context as unknown as Parameters<typeof createPublisher>[0]);
}

describe("a status", () => {
  test("is published at once, and once", async () => {
    await open(1n);
    await idle();
    expect(pet.received).toEqual([{ petId: 1n, status: AVAILABLE, statusRev: 2n }]);
    await reserve(1n);
    await idle();
    expect(received()).toEqual([AVAILABLE, PENDING]);
    await internal().commit({ petId: 1n, orderId: 1n, quantity: 1 });
    await idle();
    expect(received()).toEqual([AVAILABLE, PENDING, SOLD]);
    await set(1n, 3);
    await idle();
    expect(received()).toEqual([AVAILABLE, PENDING, SOLD, AVAILABLE]);
    await set(1n, 4);
    expect(await runWorkers()).toEqual([]);
  });

  test("that Pet is answered is not published", async () => {
    await internal().open({ petId: 1n, listing: AVAILABLE });
    await internal().setListing({ petId: 1n, op: 1n, listing: SOLD });
    await idle();
    expect(await runWorkers()).toEqual([]);
    expect(received()).toEqual([]);
  });

  test("that can't be published now is published by the recovery worker, and the write does not suffer", async () => {
    pet.down = true;
    await open(1n);
    await reserve(1n);
    await service.runWorkers();
    pet.down = false;
    expect(await runWorkers()).toMatchObject([{ petId: 1n, status: PENDING }]);
    expect(await runWorkers()).toEqual([]);
  });

  test("of one pet that fails does not hold up the others", async () => {
    pet.down = true;
    for (const petId of [1n, 2n]) await open(petId);
    await service.runWorkers();
    pet.down = false;
    pet.broken = [1n];
    expect(await runWorkers()).toMatchObject([{ petId: 2n }]);
    pet.broken = [];
    expect(await runWorkers()).toMatchObject([{ petId: 1n }]);
  });

  test("that Pet answers with a later one is numbered above that, and published again", async () => {
    await open(1n);
    await idle();
    pet.kept = [{ petId: 1n, status: SOLD, statusRev: 9n }];
    await reserve(1n);
    await idle();
    pet.kept = [];
    expect(await runWorkers()).toEqual([{ petId: 1n, status: PENDING, statusRev: 10n }]);
    expect(await runWorkers()).toEqual([]);
  });

  test("that changes while it is published is published again (race)", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    pet.slow = promise;
    await open(1n);
    await idle();
    expect(received()).toEqual([AVAILABLE]);
    await reserve(1n);
    expect(received()).toEqual([AVAILABLE]);
    resolve();
    await idle();
    expect(received()).toEqual([AVAILABLE, PENDING]);
    expect(await runWorkers()).toEqual([]);
  });

  test.each(["inventory.reserved", "inventory.status-due", "inventory.status-applied"])(
    "is published after a crash at %s",
    async (point) => {
      await open(1n);
      await idle();
      expect(received()).toEqual([AVAILABLE]);
      await service.runWorkers();
      service.crashAt(point);
      service.reached.clear();
      await reserve(1n).catch(() => {});
      await idle();
      expect(service.reached).toContain(point);
      service.crashAt(undefined);
      await service.restart();
      expect(await runWorkers()).toMatchObject([{ petId: 1n, status: PENDING }]);
      expect(await runWorkers()).toEqual([]);
    },
  );
});

describe("what was published", () => {
  const stored = async (petId: number) => (await store.collection(INVENTORY)).get(petId);

  test("leaves the outbox with the next write of the entry: a status costs no write of its own", async () => {
    await open(1n);
    let writes = 2;
    for (let orderId = 1n; orderId <= 5n; orderId++) {
      await internal().reserve({ petId: 1n, orderId, quantity: 1, tag: "t" });
      await idle();
      await internal().release({ petId: 1n, orderId });
      await idle();
      writes += 2;
    }
    expect(received()).toEqual([AVAILABLE, ...Array.from({ length: 5 }, () => [PENDING, AVAILABLE]).flat()]);
    expect(await stored(1)).toMatchObject({ rev: writes, pending: true });
    await set(1n, 7);
    expect((await stored(1))?.rev).toBe(writes + 1);
    expect(await stored(1)).not.toHaveProperty("pending");
  });

  test("leaves it when Pet itself changes the status, which is then not published besides being answered", async () => {
    await open(1n);
    await idle();
    await internal().setListing({ petId: 1n, op: 1n, listing: SOLD });
    await idle();
    expect(received()).toEqual([AVAILABLE]);
    expect(await stored(1)).not.toHaveProperty("pending");
  });

  test("is not published again by a call that changes nothing", async () => {
    await open(1n);
    await reserve(1n);
    await idle();
    await reserve(1n);
    await idle();
    expect(received()).toEqual([AVAILABLE, PENDING]);
  });

  test("leaves it by the worker, a hundred entries at the same time, and is not sent again", async () => {
    for (let petId = 1n; petId <= 100n; petId++) await open(petId);
    await idle();
    writing.most = 0;
    expect(await runWorkers()).toEqual([]);
    expect(writing.most).toBe(100);
    for (let petId = 1; petId <= 100; petId++) {
      expect((await stored(petId))?.rev).toBe(3);
      expect(await stored(petId)).not.toHaveProperty("pending");
    }
  });

  test("takes no newer status with it", async () => {
    await open(1n);
    await idle();
    pet.down = true;
    await reserve(1n);
    await internal().reserve({ petId: 1n, orderId: 2n, quantity: 1, tag: "t" });
    await service.runWorkers();
    await set(1n, 0);
    expect(await stored(1)).toMatchObject({ status: "pending", pending: true });
    pet.down = false;
    expect(await runWorkers()).toMatchObject([{ petId: 1n, status: PENDING }]);
    expect(await stored(1)).not.toHaveProperty("pending");
  });

  test("is published again after a crash, which forgets it", async () => {
    await open(1n);
    await idle();
    await service.restart();
    await set(1n, 2);
    await idle();
    expect(received()).toEqual([AVAILABLE, AVAILABLE]);
    expect(await runWorkers()).toEqual([]);
    expect(await stored(1)).not.toHaveProperty("pending");
  });
});

describe("a slow Pet", () => {
  test("keeps no write waiting, and receives many changes of one pet as one", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    pet.slow = promise;
    await open(1n);
    await idle();
    expect(received()).toEqual([AVAILABLE]);
    for (let i = 1n; i <= 10n; i++) {
      await internal().reserve({ petId: 1n, orderId: i, quantity: 1, tag: "t" });
      await internal().release({ petId: 1n, orderId: i });
    }
    await internal().setListing({ petId: 1n, op: 1n, listing: SOLD });
    expect(received()).toEqual([AVAILABLE]);
    resolve();
    await idle();
    expect(received()).toEqual([AVAILABLE, SOLD]);
    expect(await runWorkers()).toEqual([]);
  });

  test("receives many pets in one call, and a few calls at a time", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    pet.slow = promise;
    const ids = Array.from({ length: 250 }, (_, i) => BigInt(i + 1));
    for (const petId of ids) await open(petId);
    await idle();
    expect(pet.received.map(({ petId }) => petId)).toEqual([1n, 2n, 3n, 4n]);
    resolve();
    await idle();
    expect(pet.received.map(({ petId }) => petId)).toEqual(ids);
    expect([pet.calls, pet.most]).toEqual([4 + 3, 100]);
    expect(await runWorkers()).toEqual([]);
  });

  const CHANGES = 10_000;
  test.each([5, 500])("receives the last of 10,000 changes of %i pets in far fewer calls", async (pets) => {
    // Each call takes as long as a few hundred changes.
    let changes = 0;
    let slow: { until: number; go: () => void }[] = [];
    Object.defineProperty(pet, "slow", {
      get: () => new Promise<void>((go) => slow.push({ until: changes + 300, go })),
    });
    for (let petId = 1; petId <= pets; petId++) await open(BigInt(petId));
    for (; changes < CHANGES; changes++) {
      const petId = BigInt((changes % pets) + 1);
      await set(petId, Math.floor(changes / pets) % 2);
      for (const { until, go } of slow) if (until <= changes) go();
      slow = slow.filter(({ until }) => until > changes);
    }
    Object.defineProperty(pet, "slow", { value: undefined });
    for (const { go } of slow) go();
    await idle();
    const known = new Map(pet.received.map(({ petId, status }) => [petId, status]));
    for (let petId = 1n; petId <= pets; petId++) {
      const { item } = await service.client(InventoryService).getInventory({ petId });
      expect([petId, known.get(petId)]).toEqual([petId, item?.status]);
    }
    expect(pet.calls).toBeLessThan(CHANGES / 50);
    expect(await runWorkers()).toEqual([]);
  });

  test("leaves a backlog that the worker publishes in one run, a hundred pets in a call", async () => {
    pet.down = true;
    for (let petId = 1n; petId <= 1_050n; petId++) await open(petId);
    await idle();
    pet.down = false;
    expect(await runWorkers()).toHaveLength(1_050);
    expect(pet.calls).toBe(11);
    expect(await runWorkers()).toEqual([]);
  });

  test("does not receive again what it has just stored", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    pet.slow = promise;
    await open(1n);
    await idle();
    await set(1n, 5);
    resolve();
    await idle();
    expect(received()).toEqual([AVAILABLE]);
  });

  test("receives the newest of what waits, whatever came last", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const sent: bigint[] = [];
    const applyStatuses = async ({ statuses }: { statuses: PublishedStatus[] }) => {
      sent.push(...statuses.map(({ statusRev }) => statusRev));
      await promise;
      return { petId: statuses.map(({ petId }) => petId), kept: [] };
    };
    const publisher = publisherTo({ applyStatuses });
    publisher.notify(entry(1, 5));
    await idle();
    for (const statusRev of [6, 8, 7]) publisher.notify(entry(1, statusRev));
    resolve();
    await idle();
    expect(sent).toEqual([5n, 8n]);
  });

  test("is told in the trace of what changed the status, not of what came later and changed nothing", async () => {
    const { tracing, spans } = recordedTracing();
    const applyStatuses = async ({ statuses }: { statuses: PublishedStatus[] }) => ({
      petId: statuses.map(({ petId }) => petId),
      kept: [],
    });
    const publisher = publisherTo({ applyStatuses }, [], tracing);
    const [first, second, third] = ["a", "b", "c"].map((one) => ({ traceId: one.repeat(32), spanId: "1".repeat(16) }));
    publisher.notify(entry(1, 5), first);
    publisher.notify(entry(1, 5), second);
    await idle();
    publisher.notify(entry(1, 6), first);
    publisher.notify(entry(1, 7), third);
    await idle();
    expect(spans()).toMatchObject([first, third].map((one) => ({ name: "inventory.publish", traceId: one?.traceId })));
  });

  test("that can't store a status is asked again: the worker does not count it as published", async () => {
    const publisher = publisherTo({ applyStatuses: async () => ({ petId: [], kept: [] }) }, [entry(1)]);
    await expect(publisher.worker.run(10)).rejects.toThrow("1 of 1 are left for another run");
  });

  test("fills no memory: what does not fit into the queue is left to the worker", async () => {
    const { promise, resolve } = Promise.withResolvers<{ petId: bigint[]; kept: [] }>();
    const sent = new Set<bigint>();
    const applyStatuses = ({ statuses }: { statuses: PublishedStatus[] }) => {
      for (const { petId } of statuses) sent.add(petId);
      return promise;
    };
    const publisher = publisherTo({ applyStatuses });
    for (let id = 1; id <= 20_000; id++) publisher.notify(entry(id));
    await idle();
    expect(sent.size).toBe(400);
    resolve({ petId: [], kept: [] });
    await idle();
    expect(sent.size).toBe(10_000);
    publisher.notify(entry(20_000));
    await idle();
    expect(sent).toContain(20_000n);
  });

  test("fills no memory with what was published: of the pets that come first it is forgotten first", async () => {
    const applyStatuses = async ({ statuses }: { statuses: PublishedStatus[] }) => ({
      petId: statuses.map(({ petId }) => petId),
      kept: [],
    });
    const publisher = publisherTo({ applyStatuses });
    for (const ids of [2, 10_000]) {
      for (let id = 1; id <= ids; id++) publisher.notify({ ...entry(id), statusRev: ids });
      await idle();
    }
    expect([1, 10_000].map(publisher.publishedRev)).toEqual([10_000, 10_000]);
    publisher.notify(entry(10_001));
    await idle();
    expect([1, 2, 10_000, 10_001].map(publisher.publishedRev)).toEqual([undefined, 10_000, 10_000, 1]);
  });
});
