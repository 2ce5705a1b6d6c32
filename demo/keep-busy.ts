/** Acts as customers and a shopkeeper, one change after the other. */
import { type ErrorCode, type Petstore, PetstoreError } from "@petstore/client";
import {
  type Change,
  type Known,
  nextChange,
  type Outcome,
  type Pet,
  type Stock,
  withOrders,
  withStock,
} from "./next.ts";

export interface Pace {
  readonly random: () => number;
  /** Resolves when it is time for the next change, or the signal is aborted. */
  readonly pause: () => Promise<void>;
  readonly signal: AbortSignal;
  /** Most changes to make. */
  readonly changes: number;
  /** Reports what was done, or why nothing can be done now. */
  tell(what: string, counts: Counts): void;
}

/** How many changes of each kind were made, and how often another client was faster. */
export type Counts = Readonly<Record<Change["kind"] | "missed", number>>;

/** The petstore could not answer now; the next attempt may succeed. */
const NOT_NOW: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(["UNREACHABLE", "UNAVAILABLE", "OVERLOADED", "RATE_LIMITED", "DEADLINE_EXCEEDED"] as const),
]);
/** Another client has changed the record meanwhile. */
const MISSED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(["PET_NOT_AVAILABLE", "INSUFFICIENT_STOCK", "TOO_MANY_OPEN_ORDERS", "PET_NOT_FOUND"] as const),
  ...(["ORDER_NOT_FOUND", "ORDER_COMPLETE", "INVENTORY_NOT_FOUND", "ETAG_MISMATCH", "CONCURRENT_UPDATE"] as const),
]);

const codeOf = (error: unknown): ErrorCode | undefined => (error instanceof PetstoreError ? error.code : undefined);
const isOneOf = (codes: ReadonlySet<ErrorCode>, code: ErrorCode | undefined) => code !== undefined && codes.has(code);

/**
 * Resolves when `changes` changes were made, or the signal is aborted. Tries again while the petstore does not answer.
 * @throws PetstoreError for a refusal that concurrent changes do not explain.
 */
export async function keepBusy(petstore: Petstore, first: Known, pace: Pace): Promise<Counts> {
  const { random, pause, signal, changes, tell } = pace;
  const counts = { order: 0, complete: 0, cancel: 0, refill: 0, missed: 0 };
  let known = first;
  for (let made = 0; made < changes && !signal.aborted; ) {
    const change = nextChange(known, random);
    try {
      if (change === undefined) tell("nothing is for sale", counts);
      else {
        const { missed, ...outcome } = await attempt(petstore, change, signal);
        known = withOrders(known, outcome);
        counts[missed === undefined ? change.kind : "missed"]++;
        made++;
        tell(missed === undefined ? inWords(change) : `somebody else was faster: ${missed}`, counts);
        known = withStock(known, change.pet, await stockOf(petstore, change.pet, signal));
      }
    } catch (error) {
      const code = codeOf(error);
      if (code === "CANCELLED" && signal.aborted) break;
      if (!isOneOf(NOT_NOW, code)) throw error;
      tell(`waiting for the petstore (${code})`, counts);
    }
    await pause();
  }
  return counts;
}

/** Makes a change, unless another client was faster. In that case the order of the change is not used again. */
async function attempt(
  petstore: Petstore,
  change: Change,
  signal: AbortSignal,
): Promise<Outcome & { readonly missed?: string }> {
  try {
    return await perform(petstore, change, signal);
  } catch (error) {
    if (!isOneOf(MISSED, codeOf(error))) throw error;
    return { missed: (error as Error).message, ...("order" in change && { ended: change.order }) };
  }
}

async function perform(petstore: Petstore, change: Change, signal: AbortSignal): Promise<Outcome> {
  const { pet } = change;
  switch (change.kind) {
    case "order": {
      const { id } = await petstore.orders.create({ petId: pet.id, quantity: change.quantity }, { signal });
      return { placed: { id, pet } };
    }
    case "complete":
      await petstore.orders.update(change.order.id, { complete: true }, { signal });
      return { ended: change.order };
    case "cancel":
      await petstore.orders.delete(change.order.id, { signal });
      return { ended: change.order };
    case "refill": {
      const { quantity, etag } = change;
      await petstore.inventory.update(pet.id, { quantity }, { ifMatch: etag, signal });
      return {};
    }
  }
}

async function stockOf(petstore: Petstore, pet: Pet, signal: AbortSignal): Promise<Stock | undefined> {
  for await (const { quantity, status, etag } of petstore.inventory.list({ petId: pet.id }, { signal }))
    return { pet, quantity, status, etag };
  return undefined;
}

function inWords(change: Change): string {
  const { kind, pet } = change;
  if (kind === "order") return `${pet.name} ordered${change.quantity > 1 ? `, ${change.quantity} of them` : ""}`;
  if (kind === "refill") return `${change.quantity} more of ${pet.name}`;
  return kind === "complete" ? `${pet.name} delivered` : `order for ${pet.name} cancelled`;
}
