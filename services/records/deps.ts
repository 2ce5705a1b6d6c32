import type { Runtime } from "@petstore/runtime/clock";
import type { Store } from "@petstore/store/port";
import type { Tracing } from "@petstore/trace/tracing";
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
