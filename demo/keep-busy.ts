/** Acts as customers and a shopkeeper, one change after the other. */
import { type ErrorCode, type Petstore, PetstoreError } from "@petstore/client";
import type { Pet } from "./fill.ts";

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

type Kind = "order" | "complete" | "cancel" | "refill";

/** How many changes of each kind were made, and how often another client was faster. */
export type Counts = Readonly<Record<Kind | "missed", number>>;

/** The petstore could not answer now; the next attempt may succeed. */
const NOT_NOW: readonly ErrorCode[] = ["UNREACHABLE", "UNAVAILABLE", "OVERLOADED", "RATE_LIMITED", "DEADLINE_EXCEEDED"];
/** Another client has changed the record meanwhile. */
const MISSED: readonly ErrorCode[] = [
  ...(["PET_NOT_AVAILABLE", "INSUFFICIENT_STOCK", "TOO_MANY_OPEN_ORDERS", "PET_NOT_FOUND"] as const),
  ...(["ORDER_NOT_FOUND", "ORDER_COMPLETE", "INVENTORY_NOT_FOUND", "ETAG_MISMATCH", "CONCURRENT_UPDATE"] as const),
];
/** Most units of an order, and of a delivery to the shop. */
const [MAX_QUANTITY, MAX_REFILL] = [3, 12];

/**
 * Resolves when `changes` changes were made, each to a pet by chance, or the signal is aborted. Tries again while the petstore
 * does not answer.
 * @throws PetstoreError for a refusal that concurrent changes do not explain.
 */
export async function keepBusy(petstore: Petstore, pets: readonly Pet[], pace: Pace): Promise<Counts> {
  const { random, pause, signal, changes, tell } = pace;
  const counts = { order: 0, complete: 0, cancel: 0, refill: 0, missed: 0 };
  for (let made = 0; made < changes && !signal.aborted; await pause()) {
    const pet = pets[Math.floor(random() * pets.length)] as Pet;
    try {
      const change = await changeOne(petstore, pet, random, signal);
      if (change) {
        counts[change.kind]++;
        made++;
      }
      tell(change?.words ?? `${pet.name} is on hold`, counts);
    } catch (error) {
      if (!(error instanceof PetstoreError)) throw error;
      const { code, message } = error;
      if (code === "CANCELLED" && signal.aborted) break;
      if (MISSED.includes(code)) {
        counts.missed++;
        made++;
        tell(`somebody else was faster: ${message}`, counts);
      } else if (NOT_NOW.includes(code)) tell(`waiting for the petstore (${code})`, counts);
      else throw error;
    }
  }
  return counts;
}

/**
 * Ends an open order for the pet, if there is one: of four, three are completed. Else orders some of it, or brings it in again
 * once it is sold. Undefined for a pet that is on hold.
 */
async function changeOne(
  petstore: Petstore,
  { id: petId, name }: Pet,
  random: () => number,
  signal: AbortSignal,
): Promise<{ readonly kind: Kind; readonly words: string } | undefined> {
  const upTo = (most: number) => 1 + Math.floor(random() * most);
  for await (const { id } of petstore.orders.list({ petId, complete: false, limit: 1 }, { signal })) {
    if (random() < 0.75) {
      await petstore.orders.update(id, { complete: true }, { signal });
      return { kind: "complete", words: `${name} delivered` };
    }
    await petstore.orders.delete(id, { signal });
    return { kind: "cancel", words: `order for ${name} cancelled` };
  }
  const { quantity: left, status, etag } = await petstore.inventory.get(petId, { signal });
  if (status === "available") {
    const quantity = upTo(Math.min(MAX_QUANTITY, left));
    await petstore.orders.create({ petId, quantity }, { signal });
    return { kind: "order", words: `${name} ordered${quantity > 1 ? `, ${quantity} of them` : ""}` };
  }
  if (status !== "sold") return undefined;
  const quantity = upTo(MAX_REFILL);
  await petstore.inventory.update(petId, { quantity }, { ifMatch: etag, signal });
  return { kind: "refill", words: `${quantity} more of ${name}` };
}
