/** A collection of the port in MongoDB. */
import { checkId } from "../document/codec.ts";
import { viewOf } from "../document/fold.ts";
import type { Admission, Queues } from "../engine/admission.ts";
import {
  attemptsAt,
  checkPrefixQuery,
  checkQuery,
  type Declaration,
  indexedFields,
  type PrefixScan,
  type Report,
  readable,
  type Scan,
  tooMany,
} from "../engine/queries.ts";
import { type CallOptions, type Changes, type Collection, Corrupt, type Doc, type Id, type Indexes } from "../port.ts";
import { createChanges } from "./change.ts";
import type { MongoChanges } from "./changes.ts";
import type { Database, Raw } from "./database.ts";
import { type Call, retryUntilDeadline, type Timing } from "./deadline.ts";
import type { IndexBuilds } from "./index-builds.ts";
import { knownDocuments } from "./known.ts";
import { createLists } from "./lists.ts";
import { type Operation, readStored, type Stored } from "./operation-log.ts";
import { createPerKeyQueue } from "./per-key-queue.ts";
import { pointReads } from "./reads.ts";
import { createWriters } from "./writes.ts";

/** Runs a call of the port within its deadline, unless the store is closed. The signal says that nobody waits. */
export type Run = <R>(
  options: CallOptions | undefined,
  work: (call: Call) => Promise<R>,
  signal?: AbortSignal,
) => Promise<R>;

export interface CollectionOptions {
  readonly declaration: Declaration;
  readonly database: Database;
  readonly changes: MongoChanges;
  readonly indexes: IndexBuilds;
  readonly timing: Timing;
  readonly nextOperation: () => Operation;
  readonly run: Run;
  readonly admission: Admission;
  readonly report: Report;
}

export function mongoCollection<T extends Doc, I extends Indexes<T>>(options: CollectionOptions): Collection<T, I> {
  const { declaration, database, changes, indexes, timing, run, admission, report } = options;
  const queues: Queues = new Map();
  const read: Run = (options, work) => admission.read(options, () => run(options, work, options?.signal));
  const raw: Raw = database.db.collection(declaration.name);
  const decoded = (bytes: Uint8Array) => readStored<T>(bytes, declaration);
  const known = knownDocuments(decoded);
  const reads = pointReads(database, raw, known);
  const list = createLists(database, raw);
  const keys = indexedFields(declaration);
  const openWriter = createWriters(database, raw);
  const view = viewOf<T>(declaration);
  const { change, remove } = createChanges<T>({ ...options, keys, view, raw, reads, known, openWriter });
  const queue = createPerKeyQueue(change);

  const readOrError = (id: Id, call: Call) =>
    reads.read(id, [call]).catch((error: unknown) => {
      if (error instanceof Corrupt) return error;
      throw error;
    });
  const docOrThrow = (found: Stored<T> | Corrupt): T => {
    if (found instanceof Corrupt) throw found;
    return found.doc;
  };
  const docOf = (bytes: Uint8Array): T => decoded(bytes).doc;

  async function page(scan: Scan | PrefixScan, call: Call, strict = false): Promise<T[]> {
    // Each size reads from the start again: the `_id` of a document that can't be read may be no place to continue from.
    for (const limit of attemptsAt(scan.limit)) {
      const found = await retryUntilDeadline(call, timing, () =>
        indexes.withIndexes(() => list({ ...scan, limit }, call)),
      );
      const docs = strict ? found.map(docOf) : readable(found, docOf, report);
      if (docs.length >= scan.limit || found.length < limit) return docs.slice(0, scan.limit);
    }
    throw tooMany(declaration.name);
  }

  return {
    get: (id, options) =>
      read(options, async (call) => {
        checkId(id);
        const found = await retryUntilDeadline(call, timing, () => reads.read(id, [call], options?.latest));
        return found?.doc;
      }),
    getMany: (ids, options) =>
      read(options, async (call) => {
        for (const id of ids) checkId(id);
        const asked = [...new Set(ids)];
        const found = await retryUntilDeadline(call, timing, () =>
          Promise.all(asked.map((id) => readOrError(id, call))),
        );
        return readable(
          found.filter((one) => one !== undefined),
          docOrThrow,
          report,
        );
      }),
    list: (query, options) => read(options, async (call) => page(checkQuery(declaration, query), call, query.strict)),
    listByPrefix: (query, options) => read(options, async (call) => page(checkPrefixQuery(declaration, query), call)),
    update: (id, decide, options) =>
      admission.change(queues, id, options, () =>
        run(options, async (call) => {
          checkId(id);
          return queue.update(id, decide, call);
        }),
      ),
    remove: (id, isOver, options) =>
      admission.change(queues, id, options, () =>
        run(options, async (call) => {
          checkId(id);
          return queue.alone(id, () => remove(id, isOver, call));
        }),
      ),
    changes: (options) => changes.changes(options) as Promise<Changes<never>>,
    forgetChanges: () => changes.forget(),
  };
}
