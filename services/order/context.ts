/** Dependencies shared by the order handlers and sagas. */
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../records/deps.ts";
import type { Expiry } from "../records/expiry.ts";
import type { Keys } from "../records/idempotency-keys.ts";
import type { Orders } from "./model.ts";

export type OrderPeers = PeersOf<"order">;

export interface OrderContext extends Deps, OrderPeers {
  readonly orders: Orders;
  readonly expiry: Expiry;
  readonly keys: Keys;
}
