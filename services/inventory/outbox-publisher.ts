/**
 * Publishing the status that follows from the stock to Pet. The entry is its own outbox (`pending`): what a crash, a failure
 * or a full queue leaves there, the worker publishes. Normally the write notifies the publisher, which publishes at once.
 * While Pet is slow, several changes of one pet become one, and many pets share a call.
 */
import type { Client } from "@connectrpc/connect";
import { background, type CallContext, outgoing } from "@petstore/rpc/call";
import type { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import type { Worker } from "../resource/module.ts";
import { toPetStatus } from "../resource/record.ts";
import { recoveryWorker } from "../resource/recovery-worker.ts";
import type { Entries } from "./model.ts";
import { markPublished } from "./rules.ts";

/** Pets in one call. */
const MAX_BATCH = 100;
/** Calls at the same time. */
const MAX_CALLS = 4;
/** Pets that wait for a call. More are left to the worker. */
const MAX_WAITING = 10_000;

interface PublisherContext extends Pick<Deps, "clock" | "random" | "log" | "failpoint"> {
  readonly entries: Entries;
  readonly pets: Client<typeof PetInternalService>;
}

export interface Publisher {
  /** Publishes the pet's status soon. Returns at once and never fails; a pet that waits already is published once. */
  notify(petId: number): void;
  readonly worker: Worker;
}

/** Pets, each with the promise of its publication. */
type PublicationBatch = Map<number, PromiseWithResolvers<void>>;

export function createPublisher(context: PublisherContext): Publisher {
  const { clock, log, failpoint, entries, pets } = context;
  const waiting: PublicationBatch = new Map();
  const underWay = new Set<number>();
  let calls = 0;

  /** Sends the newest status of the pets. Resolves to those that Pet could not change. */
  async function send(petIds: readonly number[], callContext: CallContext): Promise<Set<number>> {
    const due = (await entries.getMany(petIds, callContext)).filter(({ pending }) => pending);
    if (due.length === 0) return new Set();
    await failpoint("inventory.status-due");
    const statuses = due.map(({ _id, status, statusRev }) => ({
      petId: BigInt(_id),
      status: toPetStatus(status),
      statusRev: BigInt(statusRev),
    }));
    const { petId } = await pets.applyStatuses({ statuses }, outgoing(clock, callContext));
    await failpoint("inventory.status-applied");
    const applied = new Set(petId.map(Number));
    const published = due.filter(({ _id }) => applied.has(_id));
    await Promise.all(
      published.map(({ _id, statusRev }) => entries.update(_id, markPublished(statusRev), callContext)),
    );
    return new Set(due.map(({ _id }) => _id)).difference(applied);
  }

  /** Resolves when Pet has stored the status that the entry has now, or a newer one. */
  function publish(petId: number): Promise<void> {
    const publication = waiting.get(petId) ?? Promise.withResolvers<void>();
    waiting.set(petId, publication);
    // Not at once: what else changes in this tick joins the batch.
    queueMicrotask(startCalls);
    return publication.promise;
  }

  function startCalls(): void {
    while (calls < MAX_CALLS) {
      const batch = takeBatch();
      if (batch.size === 0) return;
      void call(batch);
    }
  }

  function takeBatch(): PublicationBatch {
    const batch: PublicationBatch = new Map();
    for (const [petId, publication] of waiting) {
      if (batch.size === MAX_BATCH) break;
      // The call that is under way may have read the entry before this change: it is read again after that call.
      if (underWay.has(petId)) continue;
      waiting.delete(petId);
      underWay.add(petId);
      batch.set(petId, publication);
    }
    return batch;
  }

  async function call(batch: PublicationBatch): Promise<void> {
    calls++;
    try {
      const failed = await send([...batch.keys()], background(context, "publisher"));
      for (const [petId, { resolve, reject }] of batch)
        if (failed.has(petId)) reject(new Error("Pet could not change the pet"));
        else resolve();
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    }
    for (const petId of batch.keys()) underWay.delete(petId);
    calls--;
    startCalls();
  }

  const recovery = recoveryWorker(
    {
      name: "inventory.outbox",
      everyMs: 1_000,
      concurrency: MAX_BATCH,
      list: (batch, callContext) => entries.list({ ...batch, where: { pending: true } }, callContext),
      advance: ({ _id }) => publish(_id),
    },
    context,
  );
  return {
    notify(petId) {
      if (waiting.size >= MAX_WAITING) return;
      publish(petId).catch((err) => log.debug({ err, petId }, "left a status for the worker to publish"));
    },
    worker: {
      ...recovery,
      /** Goes on as long as there is a backlog. A failure ends the run. */
      async run(limit, stop) {
        let published = 0;
        for (let batch = limit; batch === limit && !stop?.aborted; published += batch)
          batch = await recovery.run(limit, stop);
        return published;
      },
    },
  };
}
