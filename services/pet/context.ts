/** Dependencies shared by the pet handlers, sagas and workers. */
import type { StockStatus } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { PeersOf } from "../peers.ts";
import type { Deps } from "../records/deps.ts";
import { DomainError } from "../records/errors.ts";
import type { Expiry } from "../records/expiry.ts";
import type { NameSearch } from "../records/folded-names.ts";
import type { Keys } from "../records/idempotency-keys.ts";
import { fromPetStatus } from "../records/record.ts";
import type { DeletionGuard } from "./deletion-guard.ts";
import type { PetDoc, Pets } from "./model.ts";
import type { NumberedStatus } from "./rules.ts";

export type PetPeers = PeersOf<"pet">;

export interface PetContext extends Deps, PetPeers {
  readonly pets: Pets;
  readonly expiry: Expiry;
  readonly deletionGuard: DeletionGuard;
  readonly keys: Keys;
  readonly names: NameSearch<PetDoc>;
}

/** Most steps that one call takes in a saga; the rest is left to the recovery worker or to later calls. */
export const MAX_STEPS = 4;

export const toNumberedStatus = (stock: StockStatus | undefined): NumberedStatus | undefined =>
  stock && { status: fromPetStatus(stock.status), statusRev: Number(stock.statusRev) };

export const unfinished = () =>
  new DomainError(
    "UNAVAILABLE",
    "The write could not be finished now; it may still take effect. Read the pet, or try again.",
  );
