import type { Implementation } from "@petstore/rpc/server/handlers";

/** Work that no request asks for: it finishes what a crash interrupted. Idempotent; any number of processes may do it. */
export interface Worker {
  readonly name: string;
  /** Pause between two runs. The first run is at start-up. */
  readonly everyMs: number;
  /** Does about `limit` pieces of work and says how many it did. It begins no other once it is told to stop. */
  sweep(limit: number, stop?: AbortSignal): Promise<number>;
}

/** What a service is to the process that runs it. */
export interface ServiceModule {
  /** The public service and the internal one. */
  readonly implementations: readonly Implementation[];
  readonly workers: readonly Worker[];
}
