/** Puts the order service together. */
import type { Deps } from "../resource/deps.ts";
import { createExpiry, withExpiry } from "../resource/expiry.ts";
import { createKeys, KEYS } from "../resource/idempotency-keys.ts";
import type { ServiceModule } from "../resource/module.ts";
import { withCaller } from "../resource/on-behalf.ts";
import { type OrderContext, type OrderPeers, resolutionOf } from "./context.ts";
import { createOrderHandlers } from "./handlers.ts";
import { isTombstone, ORDERS } from "./model.ts";
import { insertAborted } from "./rules.ts";
import { createOrderWorkers } from "./workers.ts";

export async function createOrderService(deps: Deps, peers: OrderPeers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const orders = withCaller(withExpiry(await store.collection(ORDERS), isTombstone, expiry));
  const keys = createKeys(
    await store.collection(KEYS),
    {
      nextId: (callContext) => store.nextId("order", callContext),
      resolutionOf: async (id, callContext) => resolutionOf(await orders.get(id, callContext)),
      abandon: async (id, callContext) => void (await orders.update(id, insertAborted(id), callContext)),
    },
    deps,
  );
  const context: OrderContext = { ...deps, ...peers, orders, expiry, keys };
  return { implementations: createOrderHandlers(context), workers: createOrderWorkers(context) };
}
