/**
 * Which orders Inventory knows, asked before a process gives its first id: the counter of ids may be older, as after Order was
 * restored from an older copy, and whoever remembers an id must not see another order under it.
 */
import { background, outgoing } from "@petstore/rpc/call";
import type { OrderContext } from "./context.ts";

/** An order without a pet can do without Inventory, so it waits no longer. In milliseconds. */
const TIMEOUT_MS = 1_000;

/** Resolves to the highest order that Inventory knows. While it does not answer: to undefined, and it is asked again. */
export function createKnownOrders(context: Pick<OrderContext, "clock" | "random" | "inventory">) {
  const { clock, inventory } = context;
  let highest: number | undefined;
  return async (): Promise<number | undefined> => {
    if (highest !== undefined) return highest;
    const call = { ...background(context, "known-orders"), deadline: clock() + TIMEOUT_MS };
    try {
      highest = Number((await inventory.getHighestOrder({}, outgoing(clock, call))).orderId);
    } catch {
      // Tags keep the units of two orders of one id apart, and an entry that knows the id fences it.
    }
    return highest;
  };
}
