/** What a service is made from, and what it is to the process that runs it. */
import type { Implementation } from "@petstore/rpc/server/handlers";
import type { Runtime } from "@petstore/runtime/clock";
import type { Store } from "@petstore/store/port";
import type { Tracing } from "@petstore/trace/tracing";
import type { Countable } from "./census.ts";
import type { Retention } from "./retention.ts";

/** Dependencies of a service besides its peers. */
export interface Deps extends Runtime {
  readonly store: Store;
  /** Undefined where traces are off. */
  readonly tracing?: Tracing | undefined;
  /** How long idempotency keys, tombstones and change events are kept. */
  readonly retention: Retention;
  /** A failpoint: a name between two steps of a saga, where tests crash the process. Does nothing in production. */
  readonly failpoint: (name: string) => void | Promise<void>;
}

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
