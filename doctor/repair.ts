/** Mends what is safe to mend, while no petstore runs: by the rules of the services, and by their recovery workers. */
import type { realTime } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import { openStore } from "@petstore/store/open";
import type { Store } from "@petstore/store/port";
import manifest from "../package.json" with { type: "json" };
import { type ServiceName, serviceNames } from "../processes/names.ts";
import { withFormats } from "../services/records/format-marks.ts";
import type { DoctorConfig } from "./config.ts";
import { type Finding, nameOf } from "./findings.ts";
import { type AllInspected, look, schemasOf } from "./look.ts";
import { openMending, type Stores } from "./mending.ts";
import { openServices } from "./services.ts";
import type { OpenStores } from "./stores.ts";

/** One repair may show what the next one is for. */
const MAX_ROUNDS = 5;
/** Findings of a kind that are mended in one round. */
const MOST = 100_000;

export interface RepairOptions {
  readonly time: typeof realTime;
  readonly log: Logger;
  /** Says what was done. */
  readonly say: (text: string) => void;
}

export const isSafe = ({ repair }: Finding): boolean => repair === "safe";

/** `found` is what a look at `open` has found. Both are over then: look again to see what is left. */
export async function repair(
  config: DoctorConfig,
  open: OpenStores,
  found: readonly Finding[],
  { time, log, say }: RepairOptions,
): Promise<void> {
  for (const service of serviceNames) {
    const store = open.atRest?.get(service);
    if (!store || !found.some(({ invariant, of }) => invariant === "index-missing" && of === service)) continue;
    for (const kind of schemasOf(service)) await store.dropIndexes(kind);
    say(`builds the indexes of ${service} anew`);
  }
  // SQLite lets nobody else into a file that is being changed.
  if (config.mongodbUri === undefined) for (const store of open.atRest?.values() ?? []) await store.close();
  await using stack = new AsyncDisposableStack();
  const opened = new Map<ServiceName, Store>();
  const onFatal = (error: unknown) => {
    throw error;
  };
  for (const service of serviceNames) {
    const store = await openStore({ ...config, service }, { ...time, log, onFatal });
    stack.defer(() => store.close());
    opened.set(service, withFormats(store, { service, version: manifest.version, ...time }).store);
  }
  const stores = Object.fromEntries(opened) as unknown as Stores;
  using services = await openServices(stores, time, log);
  const mending = await openMending(stores, time.clock);
  const inspected = Object.fromEntries(
    serviceNames.map((service) => [service, stores[service].inspection ?? open.inspected?.[service]]),
  ) as unknown as AllInspected;
  const said = new Set<string>();
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const now = (await look(inspected, { clock: time.clock, most: MOST })).list().filter(isSafe);
    if (now.length === 0) return;
    for (const finding of now) {
      const { invariant, ids, detail, mend } = finding;
      if (!said.has(nameOf(finding))) say(`mends ${invariant} ${ids.join(" ")}: ${detail}`);
      said.add(nameOf(finding));
      await mend?.(mending);
    }
    await services.recover();
  }
}
