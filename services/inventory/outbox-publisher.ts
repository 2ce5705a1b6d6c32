/**
 * Changes entries, and publishes each pet's status, which follows from its stock, to Pet. The entry is its own outbox
 * (`pending`). A change is normally published at once; the worker publishes what a crash, a failure or a full queue
 * has left in the outbox. While Pet is slow, several changes of one pet are merged into one, and one call carries many
 * pets.
 *
 * What is published needs no write of its own: the publisher remembers it, so that the entry's next write takes it out of the
 * outbox. The worker takes out the rest, many entries at a time.
 */
import type { Client } from "@connectrpc/connect";
import { background, type CallContext, outgoing } from "@petstore/rpc/call";
import type { Decide } from "@petstore/store/port";
import type { TraceContext } from "@petstore/trace/context";
import type { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { Deps } from "../records/module.ts";
import { fromPetStatus, toPetStatus, traceOf } from "../records/record.ts";
import { recoveryWorker, tracedWork } from "../records/sagas.ts";
import type { Entries, InventoryDoc } from "./model.ts";
import type { HighestOrder } from "./order-recovery.ts";
import { markPublished, type OperationResult, onceCleared, overtakeStatus } from "./rules.ts";

/** Most pets in one call. */
const MAX_BATCH = 100;
/** Most calls at the same time. */
const MAX_CALLS = 4;
/** Most pets that wait for a call; more are left to the worker. */
const MAX_WAITING = 10_000;
/** Most pets whose published status is remembered; that of others is published again by the worker, which Pet ignores. */
const MAX_PUBLISHED = 10_000;

interface PublisherContext extends Pick<Deps, "clock" | "random" | "log" | "failpoint" | "tracing"> {
  readonly entries: Entries;
  readonly highestOrder: Pick<HighestOrder, "note">;
  readonly pets: Client<typeof PetInternalService>;
}

/**
 * The part of an entry that is published. It is passed along instead of read again: an outdated status does no harm,
 * since Pet ignores a status that is older than its own.
 */
type Published = Pick<InventoryDoc, "_id" | "status" | "statusRev">;

interface Publication {
  readonly newest: Published;
  /** The trace of a write that has changed it, if one is recorded. */
  readonly changedBy: TraceContext | undefined;
  readonly end: PromiseWithResolvers<void>;
}
/** By pet id. */
type Publications = Map<number, Publication>;

export function createPublisher(context: PublisherContext) {
  const { clock, log, failpoint, entries, highestOrder, pets } = context;
  const waiting: Publications = new Map();
  const underWay: Publications = new Map();
  /** The revisions of the statuses that Pet has stored, by pet id. */
  const published = new Map<number, number>();
  let calls = 0;

  /** Sends the statuses. Resolves to the pets that now have their status or a newer one, or are gone. */
  async function send(due: readonly Published[], callContext: CallContext): Promise<Set<number>> {
    await failpoint("inventory.status-due");
    const statuses = due.map(({ _id, status, statusRev }) => ({
      petId: BigInt(_id),
      status: toPetStatus(status),
      statusRev: BigInt(statusRev),
    }));
    const { petId, kept } = await pets.applyStatuses({ statuses }, outgoing(clock, callContext));
    await failpoint("inventory.status-applied");
    const applied = new Set(petId.map(Number));
    for (const { _id, statusRev } of due) if (applied.has(_id)) remember(_id, statusRev);
    for (const { petId, status, statusRev } of kept) {
      const decide = overtakeStatus({ status: fromPetStatus(status), statusRev: Number(statusRev) });
      await entries.update(Number(petId), decide, callContext);
    }
    return applied;
  }

  function remember(petId: number, statusRev: number): void {
    published.set(petId, statusRev);
    if (published.size <= MAX_PUBLISHED) return;
    const [oldest] = published.keys();
    if (oldest !== undefined) published.delete(oldest);
  }

  /** Resolves when Pet has stored the status or a newer one. */
  async function publish({ _id, status, statusRev }: Published, changedBy?: TraceContext): Promise<void> {
    if (published.get(_id) === statusRev) return;
    const sent = underWay.get(_id);
    if (sent && sent.newest.statusRev >= statusRev) return sent.end.promise;
    const known = waiting.get(_id);
    // Also what has changed nothing is told here, such as an order that was refused: its trace is not that of the status.
    if (known && known.newest.statusRev >= statusRev) return known.end.promise;
    const { end } = known ?? { end: Promise.withResolvers<void>() };
    waiting.set(_id, { newest: { _id, status, statusRev }, changedBy: changedBy ?? known?.changedBy, end });
    // Deferred, so that what else changes in this tick joins the batch.
    queueMicrotask(startCalls);
    return end.promise;
  }

  function startCalls(): void {
    while (calls < MAX_CALLS) {
      const batch = takeBatch();
      if (batch.size === 0) return;
      void call(batch);
    }
  }

  function takeBatch(): Publications {
    const batch: Publications = new Map();
    for (const [petId, publication] of waiting) {
      if (batch.size === MAX_BATCH) break;
      // One call at a time for each pet: a call that overtakes an earlier one would make it pointless.
      if (underWay.has(petId)) continue;
      waiting.delete(petId);
      underWay.set(petId, publication);
      batch.set(petId, publication);
    }
    return batch;
  }

  async function call(batch: Publications): Promise<void> {
    calls++;
    try {
      const due = [...batch.values()].map(({ newest }) => newest);
      const [of, ...by] = context.tracing ? [...batch.values()].flatMap(({ changedBy }) => changedBy ?? []) : [];
      const work = (callContext: CallContext) => send(due, callContext);
      const around = background(context, "publisher");
      const applied = await tracedWork(context, "inventory.publish", { of, by }, around, work);
      for (const [petId, { end }] of batch)
        if (applied.has(petId)) end.resolve();
        else end.reject(new Error("Pet could not change the pet"));
    } catch (error) {
      for (const { end } of batch.values()) end.reject(error);
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
      records: entries,
      async advance(entry, callContext) {
        await publish(entry, traceOf(entry));
        await entries.update(entry._id, markPublished(published.get(entry._id)), callContext);
      },
    },
    // What it publishes belongs to the trace of the change.
    { ...context, tracing: undefined },
  );
  /** Publishes the status soon. Returns at once and never throws. Of several waiting statuses of one pet the newest is sent. */
  function notify(entry: Published, changedBy?: TraceContext): void {
    if (waiting.size >= MAX_WAITING) return;
    publish(entry, changedBy).catch((err) =>
      log.debug({ err, petId: entry._id }, "left a status for the worker to publish"),
    );
  }
  return {
    /** Changes an entry. If it then has a status to publish, it is notified; the answer does not wait for Pet. */
    async change<R extends Pick<OperationResult, "entry">>(
      id: number,
      decide: Decide<InventoryDoc, R>,
      failpointName: `inventory.${string}`,
      callContext: CallContext,
    ): Promise<R> {
      const result = await entries.update(id, onceCleared(decide, published.get(id)), callContext);
      await failpoint(failpointName);
      if (result.entry) highestOrder.note(result.entry);
      if (result.entry?.pending) notify(result.entry, callContext.trace);
      return result;
    },
    notify,
    /** The revision of the pet's status that was last published; undefined if that is not known. */
    publishedRev: (petId: number) => published.get(petId),
    worker: {
      ...recovery,
      /** Runs until there is no backlog. A failure ends the run. */
      async run(limit: number, stop?: AbortSignal): Promise<number> {
        let published = 0;
        for (let batch = limit; batch === limit && !stop?.aborted; published += batch)
          batch = await recovery.run(limit, stop);
        return published;
      },
    },
  };
}

export type Publisher = ReturnType<typeof createPublisher>;
