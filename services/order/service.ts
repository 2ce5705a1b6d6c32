/** Puts the order service together. */
import type { PeersOf } from "../create.ts";
import { createExpiry, type Expiry, keepingOf, withExpiry } from "../records/expiry.ts";
import { createKeys, type Keys } from "../records/idempotency-keys.ts";
import { KEYS } from "../records/key-transitions.ts";
import type { Deps, ServiceModule } from "../records/module.ts";
import { createOrderHandlers } from "./handlers.ts";
import { isTombstone, ORDERS, type Orders } from "./model.ts";

/** What the handlers and saga work with. */
export interface OrderContext extends Deps, PeersOf<"order"> {
  readonly orders: Orders;
  readonly expiry: Expiry;
  readonly keys: Keys;
}

export async function createOrderService(deps: Deps, peers: PeersOf<"order">): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const orders = withExpiry(await store.collection(ORDERS), isTombstone, expiry);
  const keys = createKeys(await store.collection(KEYS), "order", deps);
  const context: OrderContext = { ...deps, ...peers, orders, expiry, keys };
  return { implementations: createOrderHandlers(context), ...keepingOf("order", orders, context) };
}
