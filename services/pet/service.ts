/** Puts the pet service together. */
import { listPending } from "../records/census.ts";
import type { Deps } from "../records/deps.ts";
import { createExpiry, listTombstones, withExpiry } from "../records/expiry.ts";
import { createNameSearch, MARKS, withFoldedName } from "../records/folded-names.ts";
import { createKeys } from "../records/idempotency-keys.ts";
import { KEYS } from "../records/key-transitions.ts";
import type { ServiceModule } from "../records/module.ts";
import { withCaller } from "../records/on-behalf.ts";
import { finishDeletion } from "./advance-intent.ts";
import type { PetContext, PetPeers } from "./context.ts";
import { createDeletionGuard } from "./deletion-guard.ts";
import { createPetHandlers } from "./handlers.ts";
import { DELETION_GUARDS, isTombstone, nameOf, PETS } from "./model.ts";
import { createPetWorkers } from "./workers.ts";

export async function createPetService(deps: Deps, peers: PetPeers): Promise<ServiceModule> {
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
  return {
    implementations: createPetHandlers(context),
    workers: createPetWorkers(context),
    countable: {
      pending: listPending(pets, ({ op }) => op),
      states: ["CREATING", "ACTIVE"],
      tombstones: listTombstones(pets, expiry),
      keys: keys.list,
    },
  };
}
