/** Puts the order service together. */
import type { Deps } from "../records/deps.ts";
import { createExpiry, withExpiry } from "../records/expiry.ts";
import { createKeys } from "../records/idempotency-keys.ts";
import { keepingOf } from "../records/keeping.ts";
import { KEYS } from "../records/key-transitions.ts";
import type { ServiceModule } from "../records/module.ts";
import type { OrderContext, OrderPeers } from "./context.ts";
import { createOrderHandlers } from "./handlers.ts";
import { isTombstone, ORDERS } from "./model.ts";

export async function createOrderService(deps: Deps, peers: OrderPeers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const orders = withExpiry(await store.collection(ORDERS), isTombstone, expiry);
  const keys = createKeys(await store.collection(KEYS), "order", deps);
  const context: OrderContext = { ...deps, ...peers, orders, expiry, keys };
  return { implementations: createOrderHandlers(context), ...keepingOf("order", orders, context) };
}
