/** Creating a pet: claim a place in the category, look at its gate, open the inventory entry, and only then be there. */
import type { Client } from "@connectrpc/connect";
import { type Budget, onward } from "@petstore/rpc/call";
import {
  type InventoryInternalService,
  Outcome,
  type StockStatus,
} from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { DomainError } from "../resource/errors.ts";
import { accepted, type Ended, type Fate, givenUp, refused } from "../resource/idempotency-keys.ts";
import { onBehalfOf } from "../resource/on-behalf.ts";
import { fromPetStatus, toPetStatus } from "../resource/record.ts";
import type { Gatekeeper } from "./deletion-guard.ts";
import type { PetDoc, Pets } from "./model.ts";
import { activate, refusalError, refuse, type Stock } from "./rules.ts";

/** What the protocols of a pet work with. */
export interface PetContext extends Pick<Deps, "clock" | "point"> {
  readonly pets: Pets;
  readonly gatekeeper: Gatekeeper;
  readonly inventory: Client<typeof InventoryInternalService>;
}

/** Steps that a driver takes before it leaves the rest to others. */
export const ROUNDS = 4;

export const stockOf = (stock: StockStatus | undefined): Stock | undefined =>
  stock && { status: fromPetStatus(stock.status), statusRev: Number(stock.statusRev) };

export const unfinished = () =>
  new DomainError(
    "UNAVAILABLE",
    "The write could not be finished now; it may still take effect. Read the pet, or try again.",
  );

export function fateOf(doc: PetDoc | undefined): Fate {
  if (!doc) return "missing";
  if (doc.state === "CREATING") return "undecided";
  if (doc.state !== "VOID") return "accepted";
  return doc.refusal ? "refused" : "given up";
}

/** Takes a pet that is being created to its end. What drives it on is what is stored, never what a caller sent. */
export async function driveCreation(context: PetContext, id: number, budget: Budget): Promise<Ended<PetDoc>> {
  const { clock, point, pets, gatekeeper, inventory } = context;
  for (let round = 0; round < ROUNDS; round++) {
    const doc = await pets.get(id, budget);
    if (!doc) throw unfinished();
    if (doc.state === "VOID") return doc.refusal ? refused(refusalError(doc.refusal)) : givenUp;
    if (doc.state !== "CREATING") return accepted(doc);
    const call = onBehalfOf(doc, budget);
    await point("pet.creating");
    const verdict = await gatekeeper.pass(doc.categoryId, call);
    // Not a refusal: the deletion may be given up, and the pet come to be.
    if (verdict === "deleting") throw unfinished();
    await point("pet.passed-gate");
    if (verdict === "gone") {
      await pets.update(id, refuse, call);
      continue;
    }
    const names = { petId: BigInt(id), listing: toPetStatus(doc.listing) };
    const { outcome, stock } = await inventory.open(names, onward(clock, call));
    await point("pet.opened-inventory");
    const opened = stockOf(stock);
    if (outcome === Outcome.OK && opened) await pets.update(id, activate(opened), call);
  }
  throw unfinished();
}
