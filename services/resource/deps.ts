import type { Runtime } from "@petstore/runtime/clock";
import type { Store } from "@petstore/store/port";
import type { Retention } from "./expiry.ts";

/** What a service is built from besides its peers. */
export interface Deps extends Runtime {
  readonly store: Store;
  /** How long what is over is kept. */
  readonly retention: Retention;
  /** Stands between every two steps of an operation that a crash may interrupt. Does nothing in production. */
  readonly point: (name: string) => void | Promise<void>;
}
