/**
 * Telling Pet the status that follows from the stock. The outbox is the entry itself (`dirty`): what a crash, a failure or
 * too long a queue leaves there is told by the worker. In the common case a kick after the write tells it at once. While
 * Pet is slow, changes of one pet become one, and many pets become one call.
 */
import type { Client } from "@connectrpc/connect";
import { type Budget, background, onward } from "@petstore/rpc/call";
import type { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import type { Worker } from "../resource/module.ts";
import { toPetStatus } from "../resource/record.ts";
import { sweeping } from "../resource/recovery-worker.ts";
import type { Entries } from "./model.ts";
import { markTold } from "./rules.ts";

/** Pets in one call, and calls at the same time. */
const BATCH = 100;
const CALLS = 4;
/** Pets that wait for a call. More are left to the worker. */
const MAX_WAITING = 10_000;

interface Context extends Pick<Deps, "clock" | "random" | "log" | "point"> {
  readonly entries: Entries;
  readonly pets: Client<typeof PetInternalService>;
}

export interface Relay {
  /** Tells a pet its status soon. Returns at once and never fails; many kicks for one pet are one. */
  kick(petId: number): void;
  readonly worker: Worker;
}

/** Pets, and who wants to hear how it ended. */
type Batch = Map<number, PromiseWithResolvers<void>>;

export function createRelay(context: Context): Relay {
  const { clock, log, point, entries, pets } = context;
  const waiting: Batch = new Map();
  const underWay = new Set<number>();
  let calls = 0;

  /** Tells the pets what is the newest by now. Returns those that could not take it. */
  async function tell(petIds: readonly number[], budget: Budget): Promise<Set<number>> {
    const due = (await entries.getMany(petIds, budget)).filter(({ dirty }) => dirty);
    if (due.length === 0) return new Set();
    await point("inventory.status-due");
    const statuses = due.map(({ _id, status, statusRev }) => ({
      petId: BigInt(_id),
      status: toPetStatus(status),
      statusRev: BigInt(statusRev),
    }));
    const { petId } = await pets.applyStatuses({ statuses }, onward(clock, budget));
    await point("inventory.status-applied");
    const known = new Set(petId.map(Number));
    const told = due.filter(({ _id }) => known.has(_id));
    await Promise.all(told.map(({ _id, statusRev }) => entries.update(_id, markTold(statusRev), budget)));
    return new Set(due.map(({ _id }) => _id)).difference(known);
  }

  /** Resolves when the pet knows the status that its entry has now, or a newer one. */
  function publish(petId: number): Promise<void> {
    const ended = waiting.get(petId) ?? Promise.withResolvers<void>();
    waiting.set(petId, ended);
    // Not at once: what else changes in this turn of the event loop comes along.
    queueMicrotask(startCalls);
    return ended.promise;
  }

  function startCalls(): void {
    while (calls < CALLS) {
      const batch = takeBatch();
      if (batch.size === 0) return;
      void call(batch);
    }
  }

  function takeBatch(): Batch {
    const batch: Batch = new Map();
    for (const [petId, ended] of waiting) {
      if (batch.size === BATCH) break;
      // It may have read the entry already: this news comes after it, not beside it.
      if (underWay.has(petId)) continue;
      waiting.delete(petId);
      underWay.add(petId);
      batch.set(petId, ended);
    }
    return batch;
  }

  async function call(batch: Batch): Promise<void> {
    calls++;
    try {
      const left = await tell([...batch.keys()], background(context, "relay"));
      for (const [petId, { resolve, reject }] of batch)
        if (left.has(petId)) reject(new Error("Pet could not change the pet"));
        else resolve();
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    }
    for (const petId of batch.keys()) underWay.delete(petId);
    calls--;
    startCalls();
  }

  const scan = sweeping(
    {
      name: "inventory.status",
      everyMs: 1_000,
      atOnce: BATCH,
      list: (batch, budget) => entries.list({ ...batch, where: { dirty: true } }, budget),
      work: ({ _id }) => publish(_id),
    },
    context,
  );
  return {
    kick(petId) {
      if (waiting.size >= MAX_WAITING) return;
      publish(petId).catch((err) => log.debug({ err, petId }, "left a status for the worker to tell"));
    },
    worker: {
      ...scan,
      /** Goes on as long as there is a backlog. A failure ends the run. */
      async sweep(limit, stop) {
        let told = 0;
        for (let batch = limit; batch === limit && !stop?.aborted; told += batch) batch = await scan.sweep(limit, stop);
        return told;
      },
    },
  };
}
