/**
 * Changes of one document, each exactly once: read, decide, and write if the document is still what was read. When the
 * answer of a write is lost or does not tell, the next read tells by the change's mark whether it was made.
 */
import { MongoError } from "mongodb";
import { decode, type Fields, type Kind, successor } from "./document.ts";
import type { Database, Raw } from "./mongo-database.ts";
import type { Update } from "./mongo-lanes.ts";
import { type Limit, pause, persist, type Timing, unlessLost } from "./mongo-limit.ts";
import { type Change, outcome, readStored, type Stored, toStored, unchanged } from "./mongo-marks.ts";
import type { PointReads } from "./mongo-reads.ts";
import type { Writer } from "./mongo-writes.ts";
import { Corrupt, type Doc, type Id, Unavailable } from "./port.ts";
import { checkKeys } from "./query.ts";

export interface ChangeOptions {
  readonly kind: Kind;
  /** The indexed fields. */
  readonly keys: readonly string[];
  readonly database: Database;
  readonly raw: Raw;
  readonly reads: PointReads;
  readonly openWriter: () => Writer;
  readonly timing: Timing;
  readonly nextChange: () => Change;
}

/** What updates make of a document, and how they are answered once that is certain. */
interface Folded {
  /** Absent when the document stays as it is. */
  readonly next: (Doc & Fields) | undefined;
  settle(): void;
}

export function createChanges<T extends Doc>(options: ChangeOptions) {
  const { kind, keys, database, raw, reads, openWriter, timing, nextChange } = options;

  async function read(id: Id, latest = false): Promise<Stored<T> | undefined> {
    const bytes = await reads.read(id, latest);
    return bytes && readStored<T>(bytes, kind);
  }

  /** Each update decides on what the one before it left. */
  function fold(id: Id, stored: T | undefined, updates: readonly Update<T>[]): Folded {
    let current = stored;
    const answers = updates.map(({ decide, resolve, reject }) => {
      try {
        // A copy, for a result may be a part of what was seen.
        const { result, next } = successor(id, structuredClone(current), decide);
        if (next) {
          checkKeys(next.doc, keys);
          current = decode<T>(next.bytes, { name: kind.name });
        }
        return () => resolve(result);
      } catch (error) {
        return () => reject(error);
      }
    });
    const settle = () => {
      for (const answer of answers) answer();
    };
    return { next: current === stored ? undefined : (current as T & Fields), settle };
  }

  /** Makes one change of all the updates. Resolves to their answers; to nothing when the time of all of them is over. */
  async function attempt(id: Id, all: readonly Update<T>[], writer: Writer) {
    const mark = nextChange();
    let updates = all;
    let sent: { readonly base: Stored<T> | undefined; readonly settle: () => void } | undefined;
    let [writing, unsure, inDoubt, latest] = [false, false, false, false];
    for (let round = 0; all.some(({ limit }) => !limit.isOver); round++) {
      try {
        const stored = await read(id, latest);
        const known = sent && outcome(mark, sent.base, stored);
        if (sent && known === "made") return sent.settle;
        if ((unsure || inDoubt) && known === "unknown") throw new Unavailable(true);
        unsure = false;
        for (const { limit } of updates) limit.inDoubt = inDoubt;
        // As long as they may have been made together they stay together, whether anybody still waits or not.
        if (!inDoubt) updates = updates.filter(({ limit }) => !limit.isOver);
        const { next, settle } = fold(id, stored?.doc, updates);
        if (!next && (latest || !database.hasSeveralMembers())) return settle;
        // Without a write nothing proves that what was read is the latest state: read again in a way that does.
        latest = !next;
        if (!next) continue;
        sent = { base: stored, settle };
        writing = true;
        for (const { limit } of updates) limit.inDoubt = true;
        const written = await writer.write(stored, toStored(next, stored, mark));
        if (written === "made") return settle;
        writing = false;
        unsure = written === "unsure";
        if (!unsure) for (const { limit } of updates) limit.inDoubt = inDoubt;
        await pause(round, "lost", timing);
      } catch (error) {
        // Whatever has become of the document since: it is not known whether this change was made before.
        if ((unsure || inDoubt) && error instanceof Corrupt) throw new Unavailable(true, error);
        if (!(error instanceof MongoError)) throw error;
        inDoubt ||= writing;
        writing = false;
        for (const { limit } of updates) limit.failure = error;
        await pause(round, "failed", timing);
      }
    }
    return undefined;
  }

  return {
    async change(id: Id, updates: readonly Update<T>[]): Promise<void> {
      const writer = openWriter();
      try {
        const settle = await attempt(id, updates, writer);
        settle?.();
      } catch (error) {
        for (const { reject } of updates) reject(error);
      } finally {
        writer.end();
      }
    },

    /** Removes a document that `isOver`. To remove it twice is no different, so this needs no mark. */
    remove: (id: Id, isOver: (doc: T) => boolean, limit: Limit): Promise<void> =>
      database.inSession(async (session) => {
        const isSettled = async () => {
          const stored = await read(id);
          if (!stored || !isOver(stored.doc)) return true;
          limit.inDoubt = true;
          const removal = unlessLost("repeatable", raw.deleteOne(unchanged(stored), { session }));
          return (await removal).deletedCount === 1;
        };
        for (let round = 0; !(await persist(limit, timing, isSettled)); round++) await pause(round, "lost", timing);
      }),
  };
}
