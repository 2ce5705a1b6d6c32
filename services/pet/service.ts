/** Puts the pet service together. */
import type { PeersOf } from "../create.ts";
import { listPending } from "../records/census.ts";
import { createExpiry, type Expiry, expiryWorker, keepingOf, withExpiry } from "../records/expiry.ts";
import { createNameSearch, MARKS, type NameSearch, withFoldedName } from "../records/folded-names.ts";
import { createKeys, type Keys } from "../records/idempotency-keys.ts";
import { KEYS } from "../records/key-transitions.ts";
import type { Deps, ServiceModule } from "../records/module.ts";
import { recoveryWorker, withCaller } from "../records/sagas.ts";
import { advanceIntent, finishDeletion } from "./change-pet.ts";
import { advanceCreation } from "./create-pet.ts";
import { createDeletionGuard, type DeletionGuard } from "./deletion-guard.ts";
import { createPetHandlers } from "./handlers.ts";
import { DELETION_GUARDS, isTombstone, nameOf, PETS, type PetDoc, type Pets } from "./model.ts";

/** What the handlers, sagas and workers work with. */
export interface PetContext extends Deps, PeersOf<"pet"> {
  readonly pets: Pets;
  readonly expiry: Expiry;
  readonly deletionGuard: DeletionGuard;
  readonly keys: Keys;
  readonly names: NameSearch<PetDoc>;
}

export async function createPetService(deps: Deps, peers: PeersOf<"pet">): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const pets = withCaller(withExpiry(withFoldedName(await store.collection(PETS), nameOf), isTombstone, expiry));
  const names = createNameSearch("pet.names", pets, nameOf, await store.collection(MARKS), deps);
  const guards = withExpiry(await store.collection(DELETION_GUARDS), ({ closed }) => closed, expiry);
  const deletionGuard = createDeletionGuard({
    ...deps,
    ...peers,
    pets,
    guards,
    finishDeletion: (doc, callContext) => finishDeletion(context, doc, callContext),
  });
  const keys = createKeys(await store.collection(KEYS), "pet", deps);
  const context: PetContext = { ...deps, ...peers, pets, expiry, deletionGuard, keys, names };
  const recovery = recoveryWorker<PetDoc>(
    {
      name: "pet.recovery",
      everyMs: 2_000,
      records: pets,
      advance: (pet, callContext) =>
        pet.intent
          ? advanceIntent(context, pet, pet.intent.op, callContext)
          : advanceCreation(context, pet, callContext),
    },
    context,
  );
  const { workers, countable } = keepingOf("pet", pets, context);
  return {
    implementations: createPetHandlers(context),
    workers: [recovery, ...workers, expiryWorker("pet.deletion-guards", deletionGuard.removeExpired, context)],
    countable: { ...countable, pending: listPending(pets, ({ op }) => op), states: ["CREATING", "ACTIVE"] },
  };
}
