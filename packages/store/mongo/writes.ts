/**
 * Guarded writes: a document is written only if it is still what was read. Writes of one tick of the event loop, and
 * those that come while a command is under way, share one command.
 *
 * All attempts at one change are made in one session, one after the other, so that the server refuses an attempt that
 * comes after a later one. Changes that were first written together share that session.
 */
import {
  type AnyBulkWriteOperation,
  type BulkWriteResult,
  type ClientSession,
  MongoBulkWriteError,
  MongoServerError,
  type WriteError,
} from "mongodb";
import type { Fields } from "../document/codec.ts";
import { createBatcher, type Waiting } from "../engine/batcher.ts";
import type { Id } from "../port.ts";
import type { Database, Raw } from "./database.ts";
import { withPatience, withTimeout } from "./deadline.ts";
import { type Stored, unchanged } from "./operation-log.ts";

/** Changes that share a session, and so the most documents in one command. */
const MAX_BATCH = 256;
const DUPLICATE_KEY = 11000;

/** "unsure": some documents of the command were no longer what had been read, and only their number is known. */
export type Written = "made" | "not made" | "unsure";

export interface Writer {
  /** Stores `doc` if the document is still `base`. Rejects with the driver's error when it may have been stored. */
  write(base: Stored | undefined, doc: Fields): Promise<Written>;
  end(): void;
}

interface Attempt {
  readonly base: Stored | undefined;
  readonly doc: Fields;
}

type Kind = "inserts" | "replacements";

/** A session, and the changes that use it. */
interface Line {
  readonly session: ClientSession;
  /** How many changes may still write. */
  present: number;
}

interface FirstAttempt extends Attempt {
  /** Called with the line that the change has joined. */
  readonly join: (line: Line) => void;
}

export function createWriters({ openSession, noteTime }: Database, raw: Raw): () => Writer {
  /** Inserts and replacements are two commands, which need not wait for one another. */
  const first = createBatcher<Kind, FirstAttempt, Written>(async (_, attempts) => {
    const line: Line = { session: openSession(), present: attempts.length };
    for (const { join } of attempts) join(line);
    await withPatience(send(line.session, attempts));
    return [];
  }, MAX_BATCH);

  const again = createBatcher<Line, Attempt, Written>(async ({ session }, attempts) => {
    await send(session, attempts);
    return [];
  });

  async function send(session: ClientSession, attempts: readonly (Attempt & Waiting<Written>)[]): Promise<void> {
    try {
      const writes = raw.bulkWrite(attempts.map(toOperation), { session, ordered: false });
      const { matched, failed } = await counted(withTimeout("write", writes));
      const replaced = attempts.filter(({ base }, i) => base && !failed.has(i)).length;
      for (const [i, { base, resolve, reject }] of attempts.entries()) {
        const error = failed.get(i);
        if (!error) resolve(base ? ofAll(matched, replaced) : "made");
        else if (!base && error.code === DUPLICATE_KEY) resolve("not made");
        else reject(new MongoServerError({ message: error.errmsg, code: error.code }));
      }
    } catch (error) {
      for (const { reject } of attempts) reject(error);
    } finally {
      // Before any caller acts on the answer, so that its next read comes after the change.
      noteTime(session);
    }
  }

  return () => {
    let line: Line | undefined;
    return {
      write: (base, doc) =>
        line
          ? again(line, { base, doc })
          : first(base ? "replacements" : "inserts", { base, doc, join: (joined) => (line = joined) }),
      end() {
        if (line && --line.present === 0) void line.session.endSession();
      },
    };
  };
}

function toOperation({ base, doc }: Attempt): AnyBulkWriteOperation<{ _id: Id }> {
  const replacement = doc as Fields & { _id: Id };
  return base ? { replaceOne: { filter: unchanged(base), replacement } } : { insertOne: { document: replacement } };
}

/** How many replacements found the document as it was read, and which writes were refused, by index. */
interface Counted {
  readonly matched: number;
  readonly failed: ReadonlyMap<number, Pick<WriteError, "code" | "errmsg">>;
}

/** Rejects when the command itself failed: then nothing is known about any document. */
async function counted(answer: Promise<BulkWriteResult>): Promise<Counted> {
  try {
    return { matched: (await answer).matchedCount, failed: new Map() };
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError()) throw error;
    const errors = [error.writeErrors].flat();
    if (errors.length === 0) throw error;
    return { matched: error.matchedCount, failed: new Map(errors.map((one) => [one.index, one])) };
  }
}

/** What is known about each of `all` replacements, `made` of which were made. */
function ofAll(made: number, all: number): Written {
  if (made === all) return "made";
  return made === 0 ? "not made" : "unsure";
}
