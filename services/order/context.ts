/** Dependencies shared by the order handlers, sagas and workers. */
import type { CallContext } from "@petstore/rpc/call";
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../resource/deps.ts";
import { DomainError } from "../resource/errors.ts";
import type { Expiry } from "../resource/expiry.ts";
import type { createKeys, Resolution } from "../resource/idempotency-keys.ts";
import type { OrderDoc, Orders } from "./model.ts";

export type OrderPeers = PeersOf<"order">;

export interface OrderContext extends Deps, OrderPeers {
  readonly orders: Orders;
  readonly expiry: Expiry;
  readonly keys: ReturnType<typeof createKeys>;
}

/** Resolution of the idempotency key that the order was placed under. */
export function resolutionOf(doc: OrderDoc | undefined): Resolution {
  if (!doc) return "unwritten";
  if (doc.state === "PLACED" || doc.state === "ABORTING") return "undecided";
  if (doc.state !== "ABORTED") return "accepted";
  return doc.refusal ? "refused" : "abandoned";
}

/** One saga step: moves a pending order out of its state and resolves to the stored order. */
export type OrderStep = (
  context: OrderContext,
  doc: OrderDoc,
  callContext: CallContext,
) => Promise<OrderDoc | undefined>;

/** The order and its pet, as Inventory's operations name them. Only an order with a pet is ever pending. */
export const operationOf = ({ _id, petId = 0 }: OrderDoc) => ({ orderId: BigInt(_id), petId: BigInt(petId) });

export const unfinished = () =>
  new DomainError(
    "UNAVAILABLE",
    "The order could not be finished now; what was asked may still take effect. Read it, or try again.",
  );
