/** The petstore's own services in this process, without ports, and their recovery workers. */
import { pipeline } from "@petstore/rpc/client/layers";
import { inProcessTransport } from "@petstore/rpc/in-process/transport";
import { createDispatcher, type Dispatcher } from "@petstore/rpc/server/dispatcher";
import type { realTime } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import { errors } from "#errors";
import { type ServiceName, serviceNames } from "../processes/names.ts";
import { createService } from "../services/create.ts";
import type { Deps, Worker } from "../services/records/module.ts";
import { RETENTION } from "../services/records/retention.ts";
import { storeFailureOf } from "../services/records/store-failure.ts";
import type { Stores } from "./mending.ts";

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
