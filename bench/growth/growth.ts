/** Measures whether a request costs the same with a hundred times as much data: on both stores, the two sizes in turns. */

import type { Sample, Settings, Start } from "../compare/results.ts";
import { measureRounds } from "../compare/rounds.ts";
import { fill, start } from "../compare/running.ts";
import { openSurroundings, type Surroundings } from "../compare/surroundings.ts";
import type { Workload } from "../load/workloads.ts";
import { peer as mongodb } from "../peers/petstore/peer.ts";
import { peer as embedded } from "../peers/petstore-embedded/peer.ts";
import type { Progress } from "../progress.ts";
import { operations } from "./operations.ts";

const STORES = { mongodb, embedded } as const;
export type StoreName = keyof typeof STORES;
export const storeNames = Object.keys(STORES) as StoreName[];

export interface Growth extends Omit<Settings, "pets"> {
  readonly sizes: { readonly few: number; readonly many: number };
  readonly stores: readonly StoreName[];
}

export interface GrowthResults {
  readonly at: string;
  readonly machine: Surroundings["machine"];
  readonly settings: Growth;
  readonly operations: readonly Pick<Workload, "name" | "title">[];
  /** The `peer` is a size: "few" or "many". */
  readonly stores: readonly {
    readonly store: StoreName;
    readonly starts: readonly Start[];
    readonly samples: readonly Sample[];
  }[];
}

/** Size of MongoDB's cache. It holds a million pets: the subject is the cost of requests, not of a disk. */
const CACHE_GIB = 3;

export async function measureGrowth(settings: Growth, progress: Progress): Promise<GrowthResults> {
  await using stack = new AsyncDisposableStack();
  const surroundings = await openSurroundings(stack, CACHE_GIB);
  const stores: GrowthResults["stores"][number][] = [];
  let asked: readonly Workload[] = [];
  for (const store of settings.stores) {
    const peer = STORES[store];
    const subjects = [];
    for (const [size, pets] of Object.entries(settings.sizes)) {
      const place = () => surroundings.place(`${store}-${size}`);
      using bar = progress.bar(`filling ${store}`, pets);
      let filled = 0;
      await fill(peer.data, await place(), pets, {
        isOrdered: true,
        progress(now) {
          bar.step(now - filled, `${now} pets`);
          filled = now;
        },
      });
      subjects.push({ name: size, pets, start: async () => start(peer, await place()) });
    }
    asked = await operationsOf(subjects);
    const cells = asked.map((workload) => ({ workload, connections: workload.connections[0] as number }));
    stores.push({ store, ...(await measureRounds(subjects, { ...settings, cells }, surroundings, progress)) });
  }
  const { machine } = surroundings;
  const names = asked.map(({ name, title }) => ({ name, title }));
  return { at: new Date().toISOString(), machine, settings, operations: names, stores };
}

/** The operations are made from the first size; the others understand the same ones. */
async function operationsOf([first]: readonly { start: () => ReturnType<typeof start> }[]) {
  if (!first) throw new Error("There is no size.");
  const running = await first.start();
  try {
    return await operations(running.url);
  } finally {
    await running.stop();
  }
}
