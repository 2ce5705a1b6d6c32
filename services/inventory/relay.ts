/**
 * Telling Pet the status that follows from the stock. The outbox is the entry itself (`dirty`): what a crash or a failure
 * leaves there is told by the sweep. In the common case a kick after the write tells it at once.
 */
import type { Client } from "@connectrpc/connect";
import type { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { Deps } from "#shared/deps.ts";
import type { Worker } from "#shared/module.ts";
import { toPetStatus } from "#shared/record.ts";
import { type Budget, background, onward } from "#shared/rpc/call.ts";
import { sweeping } from "#shared/sweep.ts";
import type { Entries } from "./document.ts";
import { markTold } from "./rules.ts";

/** Pets that are told at the same time, and that wait for it. More are left to the sweep. */
const LANES = 32;
const MOST_WAITING = 10_000;

interface Context extends Pick<Deps, "clock" | "random" | "log" | "point"> {
  readonly entries: Entries;
  readonly pets: Client<typeof PetInternalService>;
}

export interface Relay {
  /** Tells a pet its status soon. Returns at once and never fails; many kicks for one pet are one. */
  kick(petId: number): void;
  readonly worker: Worker;
}

export function createRelay(context: Context): Relay {
  const { clock, log, point, entries, pets } = context;
  const waiting = new Set<number>();
  const underWay = new Set<number>();

  async function tell(petId: number, budget: Budget): Promise<void> {
    const entry = await entries.get(petId, budget);
    if (!entry?.dirty) return;
    const { status, statusRev } = entry;
    await point("inventory.status-due");
    const news = { petId: BigInt(petId), status: toPetStatus(status), statusRev: BigInt(statusRev) };
    await pets.applyStatus(news, onward(clock, budget));
    await point("inventory.status-applied");
    await entries.update(petId, markTold(statusRev), budget);
  }

  async function tellNow(petId: number): Promise<void> {
    underWay.add(petId);
    try {
      await tell(petId, background(context, "relay"));
    } catch (err) {
      log.debug({ err, petId }, "left a status for the sweep to tell");
    }
    underWay.delete(petId);
    startLanes();
  }

  function startLanes(): void {
    for (const petId of waiting) {
      if (underWay.size >= LANES) return;
      // It may have read the entry already: this news comes after it, not beside it.
      if (underWay.has(petId)) continue;
      waiting.delete(petId);
      void tellNow(petId);
    }
  }

  return {
    kick(petId) {
      if (waiting.size >= MOST_WAITING) return;
      waiting.add(petId);
      startLanes();
    },
    worker: sweeping(
      {
        name: "inventory.status",
        everyMs: 1_000,
        list: (batch, budget) => entries.list({ ...batch, where: { dirty: true } }, budget),
        work: ({ _id }, budget) => tell(_id, budget),
      },
      context,
    ),
  };
}
