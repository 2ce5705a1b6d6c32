/**
 * Finds reservations whose order has ended, and releases them. An order releases its units before it ends, so there
 * should be none. Only an order that was aborted or cancelled for good counts as ended: an order that Order does not know
 * may still be written, so its reservation stays.
 */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { OrderState } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import type { Worker } from "../resource/module.ts";
import { recoveryWorker } from "../resource/recovery-worker.ts";
import type { InventoryContext } from "./context.ts";
import { ordersIn } from "./order-map.ts";

export function createReconciler(context: InventoryContext): Worker {
  const { clock, log, failpoint, entries, orders, releaseOrder } = context;

  /** The orders among these that have ended. */
  async function endedAmong(held: readonly number[], callContext: CallContext): Promise<number[]> {
    const { states } = await orders.getOrderStates({ orderId: held.map(BigInt) }, outgoing(clock, callContext));
    return held.filter((_, index) => states[index] === OrderState.ENDED);
  }

  return recoveryWorker(
    {
      name: "inventory.orphans",
      everyMs: 30_000,
      list: (batch, callContext) => entries.list({ ...batch, where: { hasReservations: true } }, callContext),
      async advance({ _id, reservations }, callContext) {
        for (const order of await endedAmong(ordersIn(reservations), callContext)) {
          log.warn({ petId: _id, order }, "an order that has ended still held units: releasing them");
          await failpoint("inventory.orphan-found");
          await releaseOrder(_id, order, callContext);
        }
      },
    },
    context,
  );
}
