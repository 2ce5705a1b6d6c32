import { setTimeout } from "node:timers/promises";
import { openMemory } from "@petstore/store/memory";
import { openStore } from "@petstore/store/open";
import type { Store } from "@petstore/store/port";

/** In MongoDB if there is an address, else in files of a directory, else in memory. */
export async function openBankStore(uri?: string, dataDir = ""): Promise<Store> {
  if (uri === undefined && dataDir === "") return openMemory();
  const mongodbUri = uri === undefined ? undefined : { reveal: () => uri };
  return openStore(
    { service: "bank", dataDir, mongodbUri },
    {
      // Unlike Date.now, it never runs backwards.
      clock: () => Math.floor(performance.timeOrigin + performance.now()),
      random: Math.random,
      sleep: (ms, signal) => setTimeout(ms, undefined, { signal }),
      log: console,
      onFatal(error) {
        console.error(error);
        process.exit(1);
      },
    },
  );
}
