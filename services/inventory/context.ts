/** Dependencies shared by the inventory handlers and workers. */
import type { CallContext } from "@petstore/rpc/call";
import type { Decide } from "@petstore/store/port";
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../records/deps.ts";
import type { Expiry } from "../records/expiry.ts";
import type { HighestOrder } from "./highest-order.ts";
import type { Entries, InventoryDoc, OperationOutcome } from "./model.ts";
import type { Publisher } from "./outbox-publisher.ts";
import type { OperationResult } from "./rules.ts";

export type InventoryPeers = PeersOf<"inventory">;

export interface InventoryContext extends Deps, InventoryPeers {
  readonly entries: Entries;
  readonly expiry: Expiry;
  readonly publisher: Publisher;
  readonly highestOrder: HighestOrder;
  /** Changes an entry. If the entry has a status to publish, notifies the publisher; the answer does not wait for Pet. */
  change<R extends Pick<OperationResult, "entry">>(
    id: number,
    decide: Decide<InventoryDoc, R>,
    failpoint: `inventory.${string}`,
    callContext: CallContext,
  ): Promise<R>;
  /** Turns an order's reservation into a sale. */
  commitOrder(id: number, order: number, units: number, callContext: CallContext): Promise<OperationOutcome>;
  /** Returns an order's reservation to the stock. */
  releaseOrder(id: number, order: number, callContext: CallContext): Promise<unknown>;
}
