/** A collection of the port in MongoDB. */
import type { IndexDescription } from "mongodb";
import { checkId, type Fields } from "../document/codec.ts";
import { attemptsAt, type Report, readable, tooMany } from "../document/corrupt.ts";
import type { Admission, Queues } from "../engine/admission.ts";
import { checkQuery, type Declaration, indexedFields, type Scan } from "../engine/indexes.ts";
import type { CallOptions, Collection, Doc, Id, Indexes } from "../port.ts";
import { createChanges } from "./change.ts";
import { type Database, find, type Raw } from "./database.ts";
import { type Call, retryUntilDeadline, type Timing } from "./deadline.ts";
import { type Operation, readStored } from "./operation-log.ts";
import { createPerKeyQueue } from "./per-key-queue.ts";
import { pointReads } from "./reads.ts";
import { createWriters } from "./writes.ts";

/** Runs a call of the port within its time, unless the store is closed. */
export type Run = <R>(options: CallOptions | undefined, work: (call: Call) => Promise<R>) => Promise<R>;

export interface CollectionOptions {
  readonly declaration: Declaration;
  readonly database: Database;
  readonly timing: Timing;
  readonly nextOperation: () => Operation;
  readonly run: Run;
  readonly admission: Admission;
  readonly report: Report;
}

const keyOf = (fields: readonly string[]) => Object.fromEntries([...fields, "_id"].map((field) => [field, 1 as const]));

/** Indexes hold the documents in which all of their fields are present, and know no uniqueness. */
export const indexDescriptions = ({ indexes }: Declaration): IndexDescription[] =>
  Object.values(indexes).map((fields) => ({
    key: keyOf(fields),
    partialFilterExpression: Object.fromEntries(fields.map((field) => [field, { $exists: true }])),
  }));

export function mongoCollection<T extends Doc, I extends Indexes<T>>(options: CollectionOptions): Collection<T, I> {
  const { declaration, database, timing, nextOperation, run, admission, report } = options;
  const queues: Queues = new Map();
  const read: Run = (options, work) => admission.read(options, () => run(options, work));
  const raw: Raw = database.db.collection(declaration.name);
  const reads = pointReads(database, raw);
  const keys = indexedFields(declaration);
  const openWriter = createWriters(database, raw);
  const { change, remove } = createChanges<T>({
    kind: declaration,
    keys,
    database,
    raw,
    reads,
    openWriter,
    timing,
    nextOperation,
  });
  const queue = createPerKeyQueue(change);

  const docOf = (bytes: Uint8Array): T => readStored<T>(bytes, declaration).doc;

  return {
    get: (id, options) =>
      read(options, async (call) => {
        checkId(id);
        const bytes = await retryUntilDeadline(call, timing, () => reads.read(id, options?.latest));
        return bytes && docOf(bytes);
      }),
    getMany: (ids, options) =>
      read(options, async (call) => {
        for (const id of ids) checkId(id);
        const asked = [...new Set(ids)];
        const found = await retryUntilDeadline(call, timing, () => Promise.all(asked.map((id) => reads.read(id))));
        const stored = found.filter((bytes) => bytes !== undefined);
        return readable(stored, docOf, report);
      }),
    list: (query, options) =>
      read(options, async (call) => {
        const scan = checkQuery(declaration, query);
        // From the start again: the `_id` of a document that can't be read may be nothing to go on from.
        for (const size of attemptsAt(scan.limit)) {
          const page = await retryUntilDeadline(call, timing, () => listBytes(database, raw, { ...scan, limit: size }));
          const found = query.strict ? page.map(docOf) : readable(page, docOf, report);
          if (found.length >= scan.limit || page.length < size) return found.slice(0, scan.limit);
        }
        throw tooMany(declaration.name);
      }),
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
  };
}

function listBytes(database: Database, raw: Raw, { match, after, limit, order }: Scan): Promise<Uint8Array[]> {
  // A hint can't be followed by a query that nothing can match.
  if (match?.values.some((values) => values.length === 0)) return Promise.resolve([]);
  const isBeyond: { _id?: Fields & Record<string, Id> } =
    after === undefined ? {} : { _id: order === "asc" ? { $gt: after } : { $lt: after } };
  const fields = match?.fields.map((field, i) => [field, { $in: match.values[i] }]) ?? [];
  const options = {
    hint: keyOf(match?.fields ?? []),
    sort: { _id: order === "asc" ? 1 : -1 },
    limit: Math.min(limit, 2 ** 31 - 2),
    batchSize: Math.min(limit, 2 ** 31 - 2) + 1,
  };
  return database.inSession((session) =>
    find(raw, { ...Object.fromEntries(fields), ...isBeyond }, { ...options, session }),
  );
}
