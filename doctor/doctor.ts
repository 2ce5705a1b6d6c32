/** Looks at a petstore, and mends it. */
import type { realTime } from "@petstore/runtime/clock";
import { createLogger } from "@petstore/runtime/log";
import { Corrupt } from "@petstore/store/port";
import type { OnProgress } from "../processes/progress.ts";
import type { DoctorConfig } from "./config.ts";
import { CannotLook } from "./errors.ts";
import type { Finding } from "./findings.ts";
import { look, lookTwice } from "./look.ts";
import { isSafe, repair } from "./repair.ts";
import { isInUse, type OpenStores, openStores } from "./stores.ts";
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
    await repair(config, open, found, { time, log, say }).catch((error) => {
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
