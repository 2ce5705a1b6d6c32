/** Reading records whose deletion is under way. */
import type { CallContext } from "@petstore/rpc/call";
import { reasonOf } from "#errors";
import { DomainError } from "./errors.ts";
import type { StoredRecord } from "./record.ts";

/** Deletions that one read finishes at the same time. */
const CONCURRENCY = 16;

interface Deletion<T> {
  /** True for a record whose deletion has begun: another service may already have carried out its part. */
  readonly isUnderWay: (doc: T) => boolean;
  /** Advances the deletion to its end and resolves to the stored record. */
  readonly finish: (doc: T, callContext: CallContext) => Promise<T | undefined>;
}

/**
 * Once a deletion is under way, another service may already answer that the record is gone. So a read that finds such a
 * record finishes the deletion before it answers: whatever is stored then was true at some time during the read. If that
 * fails the read is UNAVAILABLE, because both showing the record and leaving it out may be wrong.
 */
export function finishOnRead<T extends StoredRecord>({ isUnderWay, finish }: Deletion<T>) {
  const finishOne = (doc: T, callContext: CallContext) =>
    finish(doc, callContext).catch((cause: unknown) => {
      const message = "A record is just being deleted, and it could not be found out in time whether it is gone.";
      throw new DomainError("UNAVAILABLE", `${message} Try again.`, { cause });
    });
  const isVisible = (doc: T | undefined): doc is T => doc?.visible === true;

  return {
    async one(doc: T | undefined, callContext: CallContext): Promise<T | undefined> {
      const finished = doc && isUnderWay(doc) ? await finishOne(doc, callContext) : doc;
      return isVisible(finished) ? finished : undefined;
    },

    /**
     * Keeps the order. Leaves out a record whose deletion fails on a corrupt document of another service, as lists leave
     * out corrupt documents of their own: one damaged document must not make the whole list fail.
     */
    async many(docs: readonly T[], callContext: CallContext): Promise<T[]> {
      const underWay = docs.filter(isUnderWay);
      const finished = new Map<T, T | undefined>();
      const finishAndKeep = async (doc: T) =>
        finished.set(doc, await finishOne(doc, callContext).catch(undefinedIfCorrupt));
      for (let next = 0; next < underWay.length; next += CONCURRENCY)
        await Promise.all(underWay.slice(next, next + CONCURRENCY).map(finishAndKeep));
      return docs.map((doc) => (finished.has(doc) ? finished.get(doc) : doc)).filter(isVisible);
    },
  };
}

function undefinedIfCorrupt(error: DomainError): undefined {
  if (reasonOf(error.cause)?.reason === "INTERNAL") return undefined;
  throw error;
}
