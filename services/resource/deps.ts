import type { Runtime } from "@petstore/runtime/clock";
import type { Store } from "@petstore/store/port";
import type { Retention } from "./expiry.ts";

/** What a service is built from besides its peers. */
export interface Deps extends Runtime {
  readonly store: Store;
  /** How long keys, tombstones and what changes told are kept. */
  readonly retention: Retention;
  /** A failpoint: a name between two steps of a saga, where tests crash the process. Does nothing in production. */
  readonly failpoint: (name: string) => void | Promise<void>;
}
