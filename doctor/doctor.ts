/** Looks at a petstore, and mends what is safe to mend: by the rules of the services, and by their recovery workers. */
import type { realTime } from "@petstore/runtime/clock";
import { createLogger } from "@petstore/runtime/log";
import { Corrupt, type Store } from "@petstore/store/port";
import { type ServiceName, serviceNames } from "../processes/names.ts";
import type { OnProgress } from "../processes/progress.ts";
import type { DoctorConfig } from "./config.ts";
import { CannotLook, type Finding, nameOf } from "./findings.ts";
import { type AllInspected, look, lookTwice, schemasOf } from "./look.ts";
import { openMending, openServices, type Stores } from "./mending.ts";
import { isInUse, type OpenStores, openForChange, openStores } from "./stores.ts";
import { surroundings } from "./surroundings.ts";

export interface DoctorOptions {
  readonly time: typeof realTime;
  readonly progress?: OnProgress | undefined;
  /** Says what is done, or would be. */
  readonly say: (text: string) => void;
}

const RUNS = "The petstore runs: stop it, then repair.";

/** Between two looks at a petstore that runs, in milliseconds. */
const BETWEEN_MS = 5_000;

/** What workers could not finish is found by the next look. */
const log = createLogger({ service: "doctor", level: "silent", format: "json" });

/** Whether a store as a whole is damaged, or another's: what its records lack may be there. */
const isOfStore = ({ invariant, ids: [id = "/"] }: Finding): boolean =>
  invariant === "identity-mixed" || (invariant === "corrupt-document" && !id.includes("/"));

/** What is wrong. Throws `CannotLook`. */
export async function examine(config: DoctorConfig, options: DoctorOptions): Promise<Finding[]> {
  await using open = await openStores(config, options.time);
  return await lookAt(config, open, options);
}

/** Mends what is safe to mend, and resolves to what is left. Throws `CannotLook`, also while the petstore runs. */
export async function mend(config: DoctorConfig, isDryRun: boolean, options: DoctorOptions): Promise<Finding[]> {
  const { time, say } = options;
  {
    await using open = await openStores(config, time);
    if (open.isLive) throw new CannotLook(RUNS);
    const found = await lookAt(config, open, options);
    const safe = found.filter(isSafe);
    if (isDryRun)
      for (const { invariant, ids, detail } of safe) say(`would mend ${invariant} ${ids.join(" ")}: ${detail}`);
    if (isDryRun || safe.length === 0) return found;
    if (open.atRest === undefined || found.some(isOfStore)) {
      say("The stores can't be read, or don't belong together: nothing is repaired before that is mended.");
      return found;
    }
    if (await isInUse(open.atRest)) throw new CannotLook(RUNS);
    await repair(config, open, found, options).catch((error) => {
      throw error instanceof Corrupt ? new CannotLook(error.message) : error;
    });
  }
  return examine(config, options);
}

/** Of a petstore that runs, what was there at two looks. */
async function lookAt(config: DoctorConfig, open: OpenStores, { time, progress }: DoctorOptions): Promise<Finding[]> {
  const { inspected, isLive, problems } = open;
  const lookOnce = async () => {
    const found = await problems(progress);
    if (!inspected) return found;
    try {
      return [...found, ...(await look(inspected, { clock: time.clock, progress })).list()];
    } catch (error) {
      if (!(error instanceof Corrupt)) throw error;
      // A file of which a part can't be read: it is one of the problems.
      if (found.some(isOfStore)) return found;
      throw new CannotLook(error.message);
    }
  };
  const found = isLive ? await lookTwice(lookOnce, () => time.sleep(BETWEEN_MS)) : await lookOnce();
  // Of MongoDB nobody knows which machines its petstores are on.
  return [...found, ...(await surroundings(config, config.mongodbUri ? undefined : isLive, time.clock))];
}

/** One repair may show what the next one is for. */
const MAX_ROUNDS = 5;
/** Findings of a kind that are mended in one round. */
const MOST = 100_000;

const isSafe = ({ repair }: Finding): boolean => repair === "safe";

/** `found` is what a look at `open` has found. Both are over then: look again to see what is left. */
async function repair(
  config: DoctorConfig,
  open: OpenStores,
  found: readonly Finding[],
  { time, say }: DoctorOptions,
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
  for (const service of serviceNames)
    opened.set(service, (await openForChange(service, config, time, log, stack)).store);
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
