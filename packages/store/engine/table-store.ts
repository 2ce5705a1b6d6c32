/**
 * A store over an engine that runs in this process and executes each step synchronously. What such engines have in common
 * is here: they only keep bytes by `_id` and find them by index.
 */
import { checkId, encode, type Fields, readRow } from "../document/codec.ts";
import { type Fold, fold, frozen } from "../document/fold.ts";
import type { EngineContext } from "../open.ts";
import {
  type CallOptions,
  type Changes,
  type Collection,
  type Decide,
  type Doc,
  type Id,
  type Indexes,
  type ListQuery,
  type PrefixQuery,
  type Store,
  type StringField,
  Unavailable,
  type Where,
} from "../port.ts";
import type { Row } from "../rows.ts";
import { type Admission, createAdmission, type Queues } from "./admission.ts";
import { checkDeclaration, createCollections, type Declaration, indexedFields } from "./collections.ts";
import {
  attemptsAt,
  checkNextId,
  checkPrefixQuery,
  checkQuery,
  type PrefixScan,
  type Report,
  readable,
  type Scan,
  tooMany,
} from "./queries.ts";
import { type ChangeLog, type TableChanges, tableChanges } from "./table-changes.ts";

export interface Table {
  /** Present if the schema shows anything. */
  readonly log?: ChangeLog | undefined;
  get(id: Id): Uint8Array | undefined;
  /** Inserts, or replaces `before`. `doc` is the decoded document, for the indexes. */
  put(id: Id, bytes: Uint8Array, doc: Fields, before: Fields | undefined): void;
  delete(id: Id): void;
  list(scan: Scan): readonly Row[];
  listByPrefix(scan: PrefixScan): readonly Row[];
}

/** Steps whose changes become durable together. */
export interface Batch {
  /** The same object for all steps of a batch. */
  readonly key: object;
  /**
   * Registers a change made by the running step. `statement` runs once, after all steps of the batch. `made` runs when
   * the change is durable, before the steps are answered, in the order of the statements.
   */
  write(statement: () => void, made?: () => void): void;
}

export interface TableEngine {
  /** Runs a step that changes nothing, at once, and answers when what it saw is durable. */
  read<R>(step: () => R): Promise<R>;
  /** Runs a step and answers when all that it saw or changed is durable. */
  write<R>(step: (batch: Batch) => R): Promise<R>;
  table(declaration: Declaration): Promise<Table>;
  /** The sequence's next number that is greater than `above`. Runs as part of a step. */
  next(sequence: string, batch: Batch, above?: number): number;
  close(): Promise<void>;
}

export interface Runs {
  read<R>(options: CallOptions | undefined, step: () => R): Promise<R>;
  write<R>(options: CallOptions | undefined, step: (batch: Batch) => R): Promise<R>;
}

/** What the collections of a store have in common. */
export interface TableDeps extends Pick<EngineContext, "clock" | "sleep"> {
  readonly report: Report;
  readonly runs: Runs;
  readonly admission: Admission;
}

export function tableStore(engine: TableEngine, context: Omit<TableDeps, "runs" | "admission">): Store {
  const { clock } = context;
  const admission = createAdmission();
  const inTime =
    <A extends unknown[], R>(options: CallOptions | undefined, step: (...args: A) => R) =>
    (...args: A): R => {
      if (options?.deadline === undefined || clock() < options.deadline) return step(...args);
      throw new Unavailable(false, new Error("the deadline had passed before the store came to it"));
    };
  const runs: Runs = {
    read: (options, step) => engine.read(inTime(options, step)),
    write: (options, step) => engine.write(inTime(options, step)),
  };

  const deps = { ...context, runs, admission };
  const all: TableChanges[] = [];
  const openCollection = async (declaration: Declaration) => {
    checkDeclaration(declaration);
    const table = await engine.table(declaration);
    const changes = tableChanges(declaration, table.log, deps);
    all.push(changes);
    return tableCollection(declaration, table, changes, deps);
  };

  return {
    collection: createCollections(openCollection),
    nextId: (sequence, options) =>
      admission.read(options, () =>
        runs.write(options, (batch) => {
          checkNextId(sequence, options);
          return engine.next(sequence, batch, options?.above);
        }),
      ),
    ping: (options) => runs.read(options, () => undefined),
    close() {
      for (const changes of all) changes.end();
      return engine.close();
    },
  };
}

interface Folding<T extends Doc> {
  readonly folded: Fold<T>;
  /** Writes the document as the batch has left it to the table. */
  write(): void;
  made(): void;
}

function tableCollection<T extends Doc, I extends Indexes<T>>(
  declaration: Declaration,
  table: Table,
  changes: TableChanges,
  { runs, admission, report }: TableDeps,
): Collection<T, I> {
  const keys = indexedFields(declaration);
  const queues: Queues = new Map();
  /** The documents that the steps of each batch have used. */
  const batches = new WeakMap<object, Map<Id, Folding<T>>>();

  const docOf = (row: Row): T => frozen(readRow<T>(row, declaration));
  const find = (_id: Id): Row[] => {
    checkId(_id);
    const doc = table.get(_id);
    return doc ? [{ _id, doc }] : [];
  };

  function page(wanted: number, read: (limit: number) => readonly Row[], strict = false): T[] {
    for (const limit of attemptsAt(wanted)) {
      const rows = read(limit);
      const found = strict ? rows.map(docOf) : readable(rows, docOf, report);
      if (found.length >= wanted || rows.length < limit) return found.slice(0, wanted);
    }
    throw tooMany(declaration.name);
  }

  /** Each step goes on from the step before, so a document is decoded, encoded and written once in a batch. */
  function folding(id: Id, batch: Batch): Folding<T> {
    const documents = batches.get(batch.key) ?? new Map<Id, Folding<T>>();
    batches.set(batch.key, documents);
    const known = documents.get(id);
    if (known) return known;
    const [before] = find(id).map(docOf);
    const folded = fold(id, before, keys);
    let tell: (() => void) | undefined;
    const write = () => {
      const { doc } = folded;
      if (!doc) return table.delete(id);
      const bytes = encode(doc as T & Fields);
      table.put(id, bytes, doc as T & Fields, before as (T & Fields) | undefined);
      tell = changes.note(before, doc);
    };
    const opened: Folding<T> = { folded, write, made: () => tell?.() };
    documents.set(id, opened);
    return opened;
  }

  function change<R>(id: Id, batch: Batch, step: (folded: Fold<T>) => R): R {
    const { folded, write, made } = folding(id, batch);
    const before = folded.doc?.rev;
    const result = step(folded);
    if (folded.doc?.rev !== before) batch.write(write, made);
    return result;
  }

  const changing = <R>(id: Id, options: CallOptions | undefined, step: (folded: Fold<T>) => R) =>
    admission.change(queues, id, options, () => runs.write(options, (batch) => change(id, batch, step)));

  return {
    get: (id, options) => runs.read(options, () => find(id).map(docOf)[0]),
    getMany: (ids, options) => runs.read(options, () => readable([...new Set(ids)].flatMap(find), docOf, report)),
    list: (query: ListQuery<Where<T, I>>, options) =>
      runs.read(options, () => {
        const scan = checkQuery(declaration, query);
        return page(scan.limit, (limit) => table.list({ ...scan, limit }), query.strict);
      }),
    listByPrefix: (query: PrefixQuery<StringField<T, I>>, options) =>
      runs.read(options, () => {
        const scan = checkPrefixQuery(declaration, query);
        return page(scan.limit, (limit) => table.listByPrefix({ ...scan, limit }));
      }),
    update: <R>(id: Id, decide: Decide<T, R>, options?: CallOptions) =>
      changing(id, options, (folded) => folded.update(decide)),
    remove: (id, isOver, options) => changing(id, options, (folded) => folded.remove(isOver)),
    changes: (options) => changes.changes(options) as Promise<Changes<never>>,
    forgetChanges: (before, limit, options) => changes.forget(before, limit, options),
  };
}
