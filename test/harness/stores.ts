/** Reads what the services of a petstore have stored, in any engine. */
import { copyFile, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realTime } from "@petstore/runtime/clock";
import { Secret } from "@petstore/runtime/environment";
import { openStore } from "@petstore/store/open";
import type { Collection, Doc, Indexes, Schema, Store } from "@petstore/store/port";
import { pino } from "pino";
import { type ServiceName, serviceNames } from "../../processes/names.ts";
import { CATEGORIES } from "../../services/category/model.ts";
import { INVENTORY, ordersIn } from "../../services/inventory/model.ts";
import { INTERVAL_MS, MIN_AGE_MS } from "../../services/inventory/order-recovery.ts";
import { ORDERS } from "../../services/order/model.ts";
import { PETS } from "../../services/pet/model.ts";
import { isUnfinished, wrongInTheEnd } from "../checker/invariants.ts";
import type { State } from "../checker/state.ts";
import type { Petstore } from "./petstore.ts";

const PAGE = 1_000;

/** Opens the store of a service. The embedded engine allows one process only, so the service has to be stopped for it. */
export function openStoreOf(
  { store: { dataDir, mongodbUri } }: Pick<Petstore, "store">,
  service: ServiceName,
): Promise<Store> {
  const onFatal = (error: unknown) => {
    throw error;
  };
  const config = { service, dataDir, mongodbUri: mongodbUri === undefined ? undefined : new Secret(mongodbUri) };
  return openStore(config, { ...realTime, log: pino({ level: "silent" }), onFatal });
}

async function all<T extends Doc & { _id: number }, const I extends Indexes<T>>(
  petstore: Pick<Petstore, "store">,
  service: ServiceName,
  schema: Schema<T, I>,
): Promise<Map<number, T>> {
  const store = await openStoreOf(petstore, service);
  try {
    const collection: Collection<T, I> = await store.collection(schema);
    const docs = new Map<number, T>();
    for (let after: number | undefined; ; ) {
      const page = await collection.list({ after, limit: PAGE, order: "asc" });
      for (const doc of page) docs.set(doc._id, doc);
      if (page.length < PAGE) return docs;
      after = page.at(-1)?._id;
    }
  } finally {
    await store.close();
  }
}

/** Runs `work` while the services are stopped, and restarts them. */
async function whileStopped<R>({ kill, start }: Petstore, work: () => Promise<R>): Promise<R> {
  await Promise.all(serviceNames.map((name) => kill(name, "SIGTERM")));
  try {
    return await work();
  } finally {
    await Promise.all(serviceNames.map((name) => start(name)));
  }
}

/** The records of a service with unfinished work, whether the service runs or not. */
export async function unfinishedIn({ store }: Pick<Petstore, "store">, service: ServiceName): Promise<string[]> {
  async function read<T extends Doc & { _id: number }, const I extends Indexes<T>>(
    of: ServiceName,
    schema: Schema<T, I>,
  ) {
    await using copy = store.mongodbUri === undefined ? await copied(store.dataDir, of) : undefined;
    return await all({ store: { ...store, ...copy } }, of, schema);
  }
  const unfinished = (docs: Map<number, object>) => [...docs].filter(([, doc]) => isUnfinished(doc));
  const named = (docs: (readonly [number, unknown])[]) => docs.map(([id]) => `${service} ${id}`);
  if (service === "category") return named(unfinished(await read(service, CATEGORIES)));
  if (service === "pet") return named(unfinished(await read(service, PETS)));
  if (service === "order") return [];
  const orders = await read("order", ORDERS);
  const isOpen = (order: number) => orders.get(order)?.state === "RESERVED";
  const entries = await read(service, INVENTORY);
  const leftOver = [...entries].filter(([, { reservations }]) => !ordersIn(reservations).every(isOpen));
  return named([...unfinished(entries), ...leftOver]);
}

/**
 * A copy of what a service has committed; the service may be running. SQLite appends commits to the log, and now and then
 * moves them into the file: a copy that was made during that is made again.
 */
async function copied(from: string, service: ServiceName): Promise<{ readonly dataDir: string } & AsyncDisposable> {
  const dataDir = await mkdtemp(join(tmpdir(), "petstore-copy-"));
  const file = join(from, `${service}.db`);
  const takenOver = async () => (await stat(file, { bigint: true })).mtimeNs;
  for (let before = -1n; before !== (await takenOver()); ) {
    before = await takenOver();
    for (const name of await readdir(from))
      if (name.startsWith(`${service}.db`) || name.startsWith("identity.db"))
        await copyFile(join(from, name), join(dataDir, name));
  }
  return { dataDir, [Symbol.asyncDispose]: () => rm(dataDir, { recursive: true }) };
}

/** Reads all that is stored; see `openStoreOf`. */
export const readState = async (petstore: Pick<Petstore, "store">): Promise<State> => ({
  categories: await all(petstore, "category", CATEGORIES),
  pets: await all(petstore, "pet", PETS),
  orders: await all(petstore, "order", ORDERS),
  inventory: await all(petstore, "inventory", INVENTORY),
});

/**
 * How long the services run between two looks for which they stop, in milliseconds. A reservation that is left over is asked
 * about when a process has seen it for some time, and the first run may be before the services that are asked are there again.
 */
export const BETWEEN_LOOKS_MS = MIN_AGE_MS + 3 * INTERVAL_MS;

/** Reads all that is stored. The services are stopped meanwhile. */
export const readStores = (petstore: Petstore): Promise<State> => whileStopped(petstore, () => readState(petstore));

/** The violations of the stored documents, as sentences. */
export const wrongInTheStores = async (petstore: Petstore): Promise<string[]> =>
  wrongInTheEnd(await readStores(petstore));
