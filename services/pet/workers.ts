import { changesWorker, expiryWorker, tombstonesWorker } from "../records/expiry.ts";
import type { Worker } from "../records/module.ts";
import { recoveryWorker } from "../records/recovery-worker.ts";
import { advanceIntent } from "./advance-intent.ts";
import type { PetContext } from "./context.ts";
import { advanceCreation } from "./create-pet.ts";

export function createPetWorkers(context: PetContext): Worker[] {
  const { pets, names, keys, deletionGuard } = context;
  return [
    recoveryWorker(
      {
        name: "pet.recovery",
        everyMs: 2_000,
        list: (batch, callContext) => pets.list({ ...batch, where: { pending: true } }, callContext),
        advance: (pet, callContext) =>
          pet.intent
            ? advanceIntent(context, pet, pet.intent.op, callContext)
            : advanceCreation(context, pet, callContext),
      },
      context,
    ),
    names.worker,
    expiryWorker("pet.keys", keys.removeExpired, context),
    tombstonesWorker("pet.tombstones", pets, context),
    expiryWorker("pet.deletion-guards", deletionGuard.removeExpired, context),
    changesWorker("pet.changes", pets, context),
  ];
}
