/** Reading records that are just coming to an end. */
import { ConnectError } from "@connectrpc/connect";
import type { Budget } from "@petstore/rpc/call";
import { reasonOf } from "#errors";
import { DomainError } from "./errors.ts";
import type { Stored } from "./record.ts";

/** Records that one read takes to their end at the same time. */
const AT_ONCE = 16;

interface Ending<T> {
  /** True for a record of whose end another service may know already. */
  readonly isLeaving: (doc: T) => boolean;
  /** Takes it to its end and resolves to what is stored then. */
  readonly end: (doc: T, budget: Budget) => Promise<T | undefined>;
}

/**
 * Another service may have shown by now that a record is gone. So a read that meets one which is leaving takes it to its
 * end before it answers: whatever it is then was true after the read began. If that can't be done in time, the read is
 * UNAVAILABLE, for to show the record and to leave it out may both be wrong.
 */
export function settling<T extends Stored>({ isLeaving, end }: Ending<T>) {
  const settle = (doc: T, budget: Budget) =>
    end(doc, budget).catch((cause: unknown) => {
      const message = "A record is just being deleted, and it could not be found out in time whether it is gone.";
      throw new DomainError("UNAVAILABLE", `${message} Try again.`, { cause });
    });
  const isListed = (doc: T | undefined): doc is T => doc?.listed === true;

  return {
    async one(doc: T | undefined, budget: Budget): Promise<T | undefined> {
      const settled = doc && isLeaving(doc) ? await settle(doc, budget) : doc;
      return isListed(settled) ? settled : undefined;
    },

    /** In the same order. One whose end fails on a document that can't be read elsewhere is left out, as if it were here. */
    async many(docs: readonly T[], budget: Budget): Promise<T[]> {
      const leaving = docs.filter(isLeaving);
      const ends = new Map<T, T | undefined>();
      const settleOne = async (doc: T) => ends.set(doc, await settle(doc, budget).catch(unlessReadable));
      for (let next = 0; next < leaving.length; next += AT_ONCE)
        await Promise.all(leaving.slice(next, next + AT_ONCE).map(settleOne));
      return docs.map((doc) => (ends.has(doc) ? ends.get(doc) : doc)).filter(isListed);
    },
  };
}

function unlessReadable(error: DomainError): undefined {
  if (error.cause instanceof ConnectError && reasonOf(error.cause)?.reason === "INTERNAL") return undefined;
  throw error;
}
