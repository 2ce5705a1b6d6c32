/** Dependencies shared by the order handlers and sagas. */
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../resource/deps.ts";
import type { Expiry } from "../resource/expiry.ts";
import type { Keys } from "../resource/idempotency-keys.ts";
import type { Orders } from "./model.ts";

export type OrderPeers = PeersOf<"order">;

export interface OrderContext extends Deps, OrderPeers {
  readonly orders: Orders;
  readonly expiry: Expiry;
  readonly keys: Keys;
}
