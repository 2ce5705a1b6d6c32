/** The database as the rest of the engine sees it: bytes by `_id`, every call in the process's causal history. */
import { type ClientSession, type Collection, type Db, type MongoClient, ReadConcern, type Timestamp } from "mongodb";
import type { Fields } from "../document/codec.ts";
import type { Id } from "../port.ts";
import { withTimeout } from "./deadline.ts";

/** Fields of any name; only the `_id` has a type. */
export type Raw = Collection<{ _id: Id }>;

export interface Database {
  readonly db: Db;
  /**
   * A session that comes after all that the process has seen or written. Two writes of one session can't overtake one
   * another: the server refuses the earlier one once it knows the later.
   */
  openSession(): ClientSession;
  /** From now on sessions come after what this one has seen or written. */
  noteTime(session: ClientSession): void;
  /** Runs calls in a session of their own. */
  inSession<R>(calls: (session: ClientSession) => Promise<R>): Promise<R>;
  /** Whether another server may have become the primary without the one that is asked knowing it. */
  hasSeveralMembers(): boolean;
}

export function openDatabase(client: MongoClient, name: string, hasSeveralMembers: () => boolean): Database {
  const db = client.db(name, {
    readPreference: "primary",
    readConcern: new ReadConcern("majority"),
    writeConcern: { w: "majority", journal: true },
  });
  let seen: Timestamp | undefined;

  function openSession(): ClientSession {
    const session = client.startSession({ causalConsistency: true });
    if (seen) session.advanceOperationTime(seen);
    return session;
  }

  function noteTime({ operationTime }: ClientSession): void {
    if (operationTime && (!seen || operationTime.greaterThan(seen))) seen = operationTime;
  }

  return {
    db,
    hasSeveralMembers,
    openSession,
    noteTime,
    async inSession(calls) {
      const session = openSession();
      try {
        return await calls(session);
      } finally {
        noteTime(session);
        await session.endSession();
      }
    },
  };
}

/** Bytes, for a document that can't be read must not hide its neighbours. */
export async function find(raw: Raw, filter: Fields, options: object): Promise<Uint8Array[]> {
  const found: unknown[] = await withTimeout("repeatable", raw.find(filter, { ...options, raw: true }).toArray());
  return found as Uint8Array[];
}
