/** The one place that chooses an engine. Each is loaded only when it is used. */
import { join } from "node:path";
import type { Clock } from "../deps.ts";
import type { Secret } from "../environment.ts";
import type { Store } from "./port.ts";

export interface StoreConfig {
  readonly service: string;
  readonly dataDir: string;
  readonly mongodbUri?: Secret | undefined;
}

export interface StoreOptions {
  readonly clock: Clock;
  /** The store can no longer be trusted: log the error and end the process. Called at most once. */
  readonly onFatal: (error: unknown) => void;
}

/**
 * The store of one service. Rejects with `StoreLocked`, `NewerFormat`, `NotWritable` or `Corrupt`, whose messages are
 * for the operator.
 */
export async function openStore(config: StoreConfig, options: StoreOptions): Promise<Store> {
  if (config.mongodbUri !== undefined) {
    throw new Error("MONGODB_URI is set, but this version has no MongoDB engine yet: unset it to use DATA_DIR.");
  }
  const { openEmbedded } = await import("./embedded.ts");
  return openEmbedded(join(config.dataDir, `${config.service}.db`), options);
}
