/** Looks at what services have on disk. */

import { pino } from "pino";
import { realTime } from "#shared/clock.ts";
import type { ServiceName } from "#shared/config.ts";
import { openStore } from "#shared/store/open.ts";
import type { Collection, Doc, Indexes, Schema, Store } from "#shared/store/port.ts";
import { CATEGORIES } from "../../services/category/document.ts";
import { INVENTORY } from "../../services/inventory/document.ts";
import { ORDERS } from "../../services/order/document.ts";
import { PETS } from "../../services/pet/document.ts";
import type { Petstore } from "../petstore.ts";
import { serviceNames } from "../world.ts";
import { wrongInTheEnd } from "./invariants.ts";
import type { State } from "./state.ts";

const PAGE = 1_000;

async function all<T extends Doc & { _id: number }, const I extends Indexes<T>>(
  dataDir: string,
  service: ServiceName,
  schema: Schema<T, I>,
): Promise<Map<number, T>> {
  const onFatal = (error: unknown) => {
    throw error;
  };
  const options = { ...realTime, log: pino({ level: "silent" }), onFatal };
  const store: Store = await openStore({ service, dataDir, mongodbUri: undefined }, options);
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

async function readDirectory(dataDir: string): Promise<State> {
  return {
    categories: await all(dataDir, "category", CATEGORIES),
    pets: await all(dataDir, "pet", PETS),
    orders: await all(dataDir, "order", ORDERS),
    inventory: await all(dataDir, "inventory", INVENTORY),
  };
}

/** What is wrong with the stored documents. The services are stopped in good order for it, and started again. */
export async function wrongInTheDirectory({ kill, start, dataDir }: Petstore): Promise<string[]> {
  for (const name of serviceNames) await kill(name, "SIGTERM");
  try {
    return wrongInTheEnd(await readDirectory(dataDir));
  } finally {
    for (const name of serviceNames) await start(name);
  }
}
