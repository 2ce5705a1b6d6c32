/**
 * Changes of one document, each made exactly once: read, decide, and write if the document is still what was read. The
 * first attempt decides on the cached document, if there is one, instead of reading. If the answer to a write is lost or
 * inconclusive, the operation log in the next read shows whether the write was made.
 */
import { MongoError } from "mongodb";
import type { Fields } from "../document/codec.ts";
import { fold, MAX_FOLD_MS, shownChange, type View } from "../document/fold.ts";
import { createBatcher, type Waiting } from "../engine/batcher.ts";
import { Corrupt, type Decide, type Doc, type Id, Unavailable } from "../port.ts";
import type { Database, Raw } from "./database.ts";
import { backOff, type Call, retryUntilDeadline, type Timing, withTimeout } from "./deadline.ts";
import { type Operation, operationsOf, outcome, type Stored, toStored, unchanged } from "./operation-log.ts";
import type { Known, PointReads } from "./reads.ts";
import type { Writer } from "./writes.ts";

/** Most updates in one write. */
const MAX_FOLDED = 256;

interface Asked<T extends Doc> {
  readonly decide: Decide<T, unknown>;
  readonly call: Call;
}
export type Update<T extends Doc> = Asked<T> & Waiting<unknown>;
/** What has to be done alone. */
interface Step {
  readonly step: () => Promise<unknown>;
}

/**
 * One change at a time for each document of a process. Updates that come meanwhile are folded into one write. `change` never
 * rejects. It settles the first of the given updates, and resolves to the others, which have to wait.
 */
export function createPerKeyQueue<T extends Doc>(
  change: (id: Id, updates: readonly Update<T>[]) => Promise<readonly Update<T>[]>,
) {
  const enter = createBatcher<Id, Asked<T> | Step, unknown>(async (id, entries) => {
    const [first] = entries;
    if (first && "step" in first) {
      await first.step().then(first.resolve, first.reject);
      return entries.slice(1);
    }
    const end = entries.findIndex((entry) => "step" in entry);
    const updates = (end < 0 ? entries : entries.slice(0, end)) as Update<T>[];
    return [...(await change(id, updates)), ...entries.slice(updates.length)];
  }, MAX_FOLDED);

  return {
    update: <R>(id: Id, decide: Decide<T, R>, call: Call) => enter(id, { decide, call }) as Promise<R>,
    /** Runs a step alone, between two changes of the document. */
    alone: <R>(id: Id, step: () => Promise<R>) => enter(id, { step }) as Promise<R>,
  };
}

export interface ChangeOptions<T extends Doc> {
  readonly keys: readonly string[];
  readonly view?: View<T> | undefined;
  readonly database: Database;
  readonly raw: Raw;
  readonly reads: PointReads<T>;
  readonly known: Known<T>;
  readonly openWriter: () => Writer;
  readonly timing: Timing;
  readonly nextOperation: () => Operation;
}

const calls = (updates: readonly { readonly call: Call }[]) => updates.map(({ call }) => call);

export function createChanges<T extends Doc>(options: ChangeOptions<T>) {
  const { keys, view, database, raw, reads, known, openWriter, timing, nextOperation } = options;

  /**
   * Each update decides on the document as the one before left it. Stops at the time `until`, but not before the first.
   * Returns how many have had their turn, the document if it does not stay as it is, and what answers them once that is certain.
   */
  function decideAll(id: Id, stored: T | undefined, updates: readonly Update<T>[], until: number) {
    const document = fold(id, stored, keys);
    const answers: (() => void)[] = [];
    for (const { decide, resolve, reject } of updates) {
      if (answers.length > 0 && timing.clock() >= until) break;
      try {
        const result = document.update(decide);
        answers.push(() => resolve(result));
      } catch (error) {
        answers.push(() => reject(error));
      }
    }
    const settle = () => {
      for (const answer of answers) answer();
    };
    return { count: answers.length, next: document.isChanged ? (document.doc as T & Fields) : undefined, settle };
  }

  /**
   * Makes one change of as many updates as can be decided before other work must get its turn; `leave` receives the rest.
   * Resolves to a function that answers them, or to undefined when the time of all of them is over.
   */
  async function attempt(
    id: Id,
    all: readonly Update<T>[],
    writer: Writer,
    leave: (rest: readonly Update<T>[]) => void,
  ) {
    const operation = nextOperation();
    let updates = all;
    let taken: readonly Update<T>[] | undefined;
    let sent: { readonly base: Stored<T> | undefined; readonly settle: () => void } | undefined;
    let [writing, unsure, inDoubt, latest] = [false, false, false, false];
    for (let round = 0; (taken ?? all).some(({ call }) => !call.isOver); round++) {
      try {
        const assumed = round === 0 ? known.base(id) : undefined;
        const stored = assumed ? assumed.document : await reads.read(id, calls(taken ?? all), latest);
        const fate = sent && outcome(operation, sent.base, stored);
        if (sent && fate === "made") return sent.settle;
        if ((unsure || inDoubt) && fate === "unknown") throw new Unavailable(true);
        unsure = false;
        for (const { call } of updates) call.inDoubt = inDoubt;
        // While the updates may have been made together they stay together, even those whose callers have given up.
        if (!inDoubt) updates = updates.filter(({ call }) => !call.isOver);
        // Cut only once: later attempts make the same change, without further updates.
        const until = taken ? Number.POSITIVE_INFINITY : timing.clock() + MAX_FOLD_MS;
        const { count, next, settle } = decideAll(id, stored?.doc, updates, until);
        if (!taken) leave(updates.slice(count));
        updates = updates.slice(0, count);
        taken ??= updates;
        if (!next && !assumed && (latest || !database.hasSeveralMembers())) return settle;
        // Without a write nothing proves that this is the latest state, so the next read has to prove it.
        latest = !next;
        if (!next) continue;
        sent = { base: stored, settle };
        writing = true;
        for (const { call } of updates) call.inDoubt = true;
        known.forget(id);
        const news = view && shownChange(view, stored?.doc, next);
        const fields = toStored(next, stored, operation, news);
        const written = await writer.write(stored, fields);
        if (written === "made") {
          known.noteWritten(id, fields, { doc: next, operations: operationsOf(fields) });
          return settle;
        }
        writing = false;
        unsure = written === "unsure";
        if (!unsure) for (const { call } of updates) call.inDoubt = inDoubt;
        // A wrong assumption is no lost race, so there is no pause.
        if (!assumed) await backOff(round, "lost", timing);
      } catch (error) {
        // The document has become corrupt since; whether this change was made before is unknown.
        if ((unsure || inDoubt) && error instanceof Corrupt) throw new Unavailable(true, error);
        if (!(error instanceof MongoError)) throw error;
        inDoubt ||= writing;
        writing = false;
        for (const { call } of updates) call.failure = error;
        await backOff(round, "failed", timing);
      }
    }
    return undefined;
  }

  return {
    /** Settles the updates, except those that it resolves to: they did not get their turn. */
    async change(id: Id, updates: readonly Update<T>[]): Promise<readonly Update<T>[]> {
      const writer = openWriter();
      let rest: readonly Update<T>[] = [];
      try {
        const settle = await attempt(id, updates, writer, (left) => (rest = left));
        settle?.();
      } catch (error) {
        for (const update of updates) if (!rest.includes(update)) update.reject(error);
      } finally {
        writer.end();
      }
      return rest;
    },

    /** Removes the document if `isOver`. Removing it twice makes no difference, so this needs no entry in the log. */
    remove: (id: Id, isOver: (doc: T) => boolean, call: Call): Promise<void> =>
      database.inSession(async (session) => {
        const isSettled = async () => {
          const stored = await reads.read(id, [call]);
          if (!stored || !isOver(stored.doc)) return true;
          call.inDoubt = true;
          known.forget(id);
          const removal = withTimeout("repeatable", raw.deleteOne(unchanged(stored), { session }));
          return (await removal).deletedCount === 1;
        };
        for (let round = 0; !(await retryUntilDeadline(call, timing, isSettled)); round++)
          await backOff(round, "lost", timing);
      }),
  };
}
