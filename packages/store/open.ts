/** The one place that chooses an engine, and what each engine is given. Engines are loaded only when they are used. */
import { resolve } from "node:path";
import type { MongoOptions } from "./mongo/mongo.ts";
import type { Store } from "./port.ts";
import type { StoreAtRest } from "./rows.ts";

/** A text that must not be printed. */
interface Secret {
  reveal(): string;
}

export interface StoreConfig {
  readonly service: string;
  readonly dataDir: string;
  readonly mongodbUri?: Secret | undefined;
}

/** Whole milliseconds since 1970 that never run backwards within a process. */
export type Clock = () => number;

interface Write {
  (fields: object, text: string): void;
  (text: string): void;
}

/** Where the store says what an operator should know: a logger such as pino's, or `console`. */
export type Log = Readonly<Record<"info" | "warn" | "error", Write>>;

/** Time, randomness and the log, passed to an engine so that a test or a simulation can replace them. */
export interface EngineContext {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Log;
}

export interface StoreOptions extends EngineContext {
  /** The store can no longer be trusted: log the error and end the process. Called at most once. */
  readonly onFatal: (error: unknown) => void;
  /** A list has left out a document of this collection, because it can't be read. */
  readonly onCorrupt?: ((collection: string | undefined) => void) | undefined;
  /** That of the program, which MongoDB is told with each connection. */
  readonly version?: string | undefined;
  /** Called with what the opening waits for, whenever that changes. */
  readonly waitsFor?: (what: string) => void;
}

/**
 * Opens the store of one service: in MongoDB, waiting for it if need be, when there is a URI, else in a file of
 * `dataDir`. Rejects with `UnusableServer`, `StoreLocked`, `UnsupportedFormat`, `NotWritable` or `Corrupt`, whose
 * messages are for the operator.
 */
export const openStore = (config: StoreConfig, options: StoreOptions): Promise<Store> =>
  storesOfOneProcess()(config, options);

/**
 * Looks at the store of one service without changing it: in MongoDB, whoever works with it, or in a file that nobody has open.
 * Rejects with `UnusableServer` for a server that can't be used or does not answer, with `StoreLocked` for a file that is in use,
 * and with `Corrupt` for one that can't be read at all.
 */
export async function openInspection(
  { service, dataDir, mongodbUri }: StoreConfig,
  { clock, sleep }: Pick<StoreOptions, "clock" | "sleep">,
): Promise<StoreAtRest> {
  if (mongodbUri !== undefined) {
    const { inspectDatabase } = await import("./mongo/inspection.ts");
    return inspectDatabase(mongodbUri.reveal(), service, { clock, sleep });
  }
  const { inspectFile } = await import("./sqlite/inspection.ts");
  return inspectFile(resolve(dataDir, `${service}.db`));
}

/** Returns `openStore` for several services of one process: in MongoDB they share one client, closed with the last store. */
export function storesOfOneProcess(): typeof openStore {
  let openClients: MongoOptions["openClients"];
  return async (config, options) => {
    if (config.mongodbUri !== undefined) {
      const { openMongo, sharedClients } = await import("./mongo/mongo.ts");
      openClients ??= sharedClients();
      return openMongo(config.mongodbUri.reveal(), config.service, { ...options, openClients });
    }
    // SQLite may take a relative path for a URI: https://sqlite.org/uri.html
    const { openEmbedded } = await import("./sqlite/sqlite.ts");
    return openEmbedded(resolve(config.dataDir, `${config.service}.db`), options);
  };
}
