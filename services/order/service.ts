/** Puts the order service together. */
import type { Deps } from "../resource/deps.ts";
import { createExpiry, withExpiry } from "../resource/expiry.ts";
import { createKeys } from "../resource/idempotency-keys.ts";
import { KEYS } from "../resource/key-transitions.ts";
import type { ServiceModule } from "../resource/module.ts";
import type { OrderContext, OrderPeers } from "./context.ts";
import { createOrderHandlers } from "./handlers.ts";
import { isTombstone, ORDERS } from "./model.ts";
import { createOrderWorkers } from "./workers.ts";

export async function createOrderService(deps: Deps, peers: OrderPeers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const orders = withExpiry(await store.collection(ORDERS), isTombstone, expiry);
  const keys = createKeys(await store.collection(KEYS), "order", deps);
  const context: OrderContext = { ...deps, ...peers, orders, expiry, keys };
  return { implementations: createOrderHandlers(context), workers: createOrderWorkers(context) };
}
