/**
 * The stores as repairs change them: through the port, by the wrappers of the services that own the records; and the services
 * themselves, in this process and without ports, with their recovery workers.
 */
import { pipeline } from "@petstore/rpc/client/layers";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import { createDispatcher, type Dispatcher } from "@petstore/rpc/server/dispatcher";
import type { realTime } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import type { Collection, Store } from "@petstore/store/port";
import { errors } from "#errors";
import { type ServiceName, serviceNames } from "../processes/names.ts";
import { CATEGORIES, isTombstone as isDeletedCategory, nameOf as nameOfCategory } from "../services/category/model.ts";
import { createService } from "../services/create.ts";
import { INVENTORY, isTombstone as isRetired } from "../services/inventory/model.ts";
import { storeFailureOf } from "../services/observed-store.ts";
import { isTombstone as isEndedOrder, ORDERS } from "../services/order/model.ts";
import { DELETION_GUARDS, isTombstone as isEndedPet, nameOf, PETS } from "../services/pet/model.ts";
import { createExpiry, withExpiry } from "../services/records/expiry.ts";
import { withFoldedName } from "../services/records/folded-names.ts";
import { KEYS, type KeyDoc } from "../services/records/key-transitions.ts";
import type { Deps, Worker } from "../services/records/module.ts";
import { RETENTION } from "../services/records/retention.ts";

export type Stores = Readonly<Record<ServiceName, Store>>;
export type Mending = Awaited<ReturnType<typeof openMending>>;

export async function openMending(stores: Stores, clock: () => number) {
  const { pet, category, order, inventory } = stores;
  const expiry = createExpiry(RETENTION.tombstones, clock);
  const keys: Partial<Record<ServiceName, Collection<KeyDoc>>> = {
    pet: await pet.collection(KEYS),
    category: await category.collection(KEYS),
    order: await order.collection(KEYS),
  };
  const named = withFoldedName(await category.collection(CATEGORIES), nameOfCategory);
  return {
    stores,
    pets: withExpiry(withFoldedName(await pet.collection(PETS), nameOf), isEndedPet, expiry),
    guards: withExpiry(await pet.collection(DELETION_GUARDS), ({ closed }) => closed, expiry),
    categories: withExpiry(named, isDeletedCategory, expiry),
    orders: withExpiry(await order.collection(ORDERS), isEndedOrder, expiry),
    entries: withExpiry(await inventory.collection(INVENTORY), isRetired, expiry),
    keys,
  };
}

/** Documents that a worker lists at once. */
const BATCH = 100;
/** What can't be finished now is left. */
const MAX_ROUNDS = 50;

/** The services on these stores, which call each other in memory. */
export async function openServices(stores: Stores, time: typeof realTime, log: Logger) {
  const dispatchers = new Map<ServiceName, Dispatcher>();
  const pathTo = (peer: ServiceName) =>
    pipeline(
      inProcessTransport(() => dispatchers.get(peer) as Dispatcher),
      { errors, ...time },
    );
  const workers: Worker[] = [];
  for (const name of serviceNames) {
    const deps: Deps = { store: stores[name], log, ...time, retention: RETENTION, failpoint: () => {} };
    const service = await createService(name, deps, pathTo);
    dispatchers.set(name, createDispatcher(service.implementations, { deps, errors, storeFailureOf }));
    workers.push(...service.workers.filter((worker) => /\.(recovery|outbox)$/.test(worker.name)));
  }
  return {
    pathTo,
    /** Finishes what is pending, until nothing is or what is left can't be finished. */
    async recover(): Promise<void> {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        // A run in which anything failed rejects: the final look names what is left.
        const done = await Promise.all(workers.map((worker) => worker.run(BATCH).catch(() => 0)));
        if (done.every((count) => count === 0)) return;
      }
    },
    [Symbol.dispose](): void {
      for (const dispatcher of dispatchers.values()) dispatcher.drain();
    },
  };
}
