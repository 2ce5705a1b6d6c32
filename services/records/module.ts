import type { Implementation } from "@petstore/rpc/server/handlers";
import type { Countable } from "./census.ts";

/** Background work, such as finishing what a crash interrupted. Idempotent: several processes may do it at the same time. */
export interface Worker {
  readonly name: string;
  /** Pause between two runs. The first run is at start-up. */
  readonly everyMs: number;
  /** Does about `limit` pieces of work and resolves to how many it did. It begins no further one after `stop`. */
  run(limit: number, stop?: AbortSignal): Promise<number>;
}

/** What a service is to the process that runs it. */
export interface ServiceModule {
  /** The public service and the internal one. */
  readonly implementations: readonly Implementation[];
  readonly workers: readonly Worker[];
  /** For metrics. */
  readonly countable: Countable;
}
