/** Reading records whose deletion is under way. */

import type { CallContext } from "@petstore/rpc/call";
import type { Runtime } from "@petstore/runtime/clock";
import { DomainError } from "./errors.ts";
import { isVisible, type StoredRecord } from "./record.ts";

/** The longest that a list, or a page of a snapshot, waits for deletions, in milliseconds. */
const LIST_WAIT_MS = 1_000;

interface Deletion<T> {
  /** True for a record whose deletion has begun: another service may already have carried out its part. */
  readonly isUnderWay: (doc: T) => boolean;
  /** Advances the deletion to its end and resolves to the stored record. */
  readonly finish: (doc: T, callContext: CallContext) => Promise<T | undefined>;
}

/** What one call does with the documents that it has read: each function resolves to those that are visible, in order. */
export interface FinishOnRead<T> {
  /** For documents that the caller asked for by id: a record is missing only if there is none. */
  readonly asked: (docs: readonly T[]) => Promise<T[]>;
  /** For documents that a list found. */
  readonly listed: (docs: readonly T[]) => Promise<T[]>;
}

/**
 * Once a deletion is under way, another service may already answer that the record is gone. So a read that finds such a
 * record finishes the deletion before it answers: whatever is stored then was true at some time during the read. If that
 * fails, both showing the record and leaving it out may be wrong. Who asked for it by id is told UNAVAILABLE. A list goes
 * on without it, because one record must not take the others from everybody. A snapshot shows it: if it goes, an event
 * says so, but none would bring it back.
 */
export function finishOnRead<T extends StoredRecord>(
  { isUnderWay, finish }: Deletion<T>,
  { clock }: Pick<Runtime, "clock">,
) {
  async function many(docs: readonly T[], finishOne: (doc: T) => Promise<T | undefined>): Promise<T[]> {
    if (!docs.some(isUnderWay)) return docs.filter(isVisible);
    const finished: (T | undefined)[] = [...docs];
    await Promise.all(
      docs.map(async (doc, i) => {
        if (isUnderWay(doc)) finished[i] = await finishOne(doc);
      }),
    );
    return finished.filter(isVisible);
  }

  function soon(callContext: CallContext): CallContext {
    const now = clock();
    return { ...callContext, deadline: now + Math.min(LIST_WAIT_MS, (callContext.deadline - now) / 2) };
  }
  const undecided = (cause: unknown) => {
    const message = "A record is just being deleted, and it could not be found out in time whether it is gone.";
    throw new DomainError("UNAVAILABLE", `${message} Try again.`, { cause });
  };

  return {
    read(callContext: CallContext): FinishOnRead<T> {
      const brief = soon(callContext);
      return {
        asked: (docs) => many(docs, (doc) => finish(doc, callContext).catch(undecided)),
        listed: (docs) => many(docs, (doc) => finish(doc, brief).catch(() => undefined)),
      };
    },
    snapshot(callContext: CallContext): FinishOnRead<T> {
      const brief = soon(callContext);
      const shown = (docs: readonly T[]) => many(docs, (doc) => finish(doc, brief).catch(() => doc));
      return { asked: shown, listed: shown };
    },
  };
}
