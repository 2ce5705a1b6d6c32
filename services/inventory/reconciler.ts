/**
 * Looks for reservations whose order is over. Order releases what it took before it ends, so there should be none; this
 * finds them if there are. It acts only on an order that was refused or cancelled for good: that an order is not known, or
 * was not known a moment ago, is no evidence.
 */
import type { Client } from "@connectrpc/connect";
import { type Budget, onward } from "@petstore/rpc/call";
import { OrderFate, type OrderInternalService } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import type { Worker } from "../resource/module.ts";
import { sweeping } from "../resource/recovery-worker.ts";
import type { Entries } from "./model.ts";
import { ordersIn } from "./order-map.ts";

interface Context extends Pick<Deps, "clock" | "random" | "log" | "point"> {
  readonly entries: Entries;
  readonly orders: Client<typeof OrderInternalService>;
  readonly release: (petId: number, order: number, budget: Budget) => Promise<unknown>;
}

export function createReconciler(context: Context): Worker {
  const { clock, log, point, entries, orders, release } = context;

  /** The orders among these that are over. */
  async function over(held: readonly number[], budget: Budget): Promise<number[]> {
    const { fates } = await orders.getOrderStates({ orderId: held.map(BigInt) }, onward(clock, budget));
    return held.filter((_, place) => fates[place] === OrderFate.OVER);
  }

  return sweeping(
    {
      name: "inventory.orphans",
      everyMs: 30_000,
      list: (batch, budget) => entries.list({ ...batch, where: { holding: true } }, budget),
      async work({ _id, resv }, budget) {
        for (const order of await over(ordersIn(resv), budget)) {
          log.warn({ petId: _id, order }, "an order that is over still held units: releasing them");
          await point("inventory.orphan-found");
          await release(_id, order, budget);
        }
      },
    },
    context,
  );
}
