/**
 * A store over an engine that lives in this process and does each step at once. All that such engines have in common is
 * here: they only keep bytes by `_id` and find them by index.
 */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../deps.ts";
import { checkId, decode, type Fields, successor } from "./document.ts";
import {
  type CallOptions,
  type Collection,
  Corrupt,
  type Decide,
  type Doc,
  type Id,
  type Indexes,
  type ListQuery,
  type Schema,
  type Store,
  Unavailable,
  type Where,
} from "./port.ts";
import { checkDeclaration, checkKeys, checkQuery, type Declaration, indexedFields, type Scan } from "./query.ts";
import { attemptsAt, type Report, readable, tooMany } from "./readable.ts";

/** A stored document, and where it was found. */
export interface Row {
  readonly _id: Id;
  readonly doc: Uint8Array;
}

export interface Table {
  get(id: Id): Uint8Array | undefined;
  /** Inserts or replaces. `doc` is what the bytes stand for, for the indexes. */
  put(id: Id, bytes: Uint8Array, doc: Fields): void;
  delete(id: Id): void;
  list(scan: Scan): Row[];
}

export interface Engine {
  /** Runs a step at once and answers when all that it wrote or saw is there to stay. */
  run<R>(step: () => R): Promise<R>;
  table(declaration: Declaration): Promise<Table>;
  /** The sequence's next number. A part of a step, as the methods of a table are. */
  next(sequence: string): number;
  close(): Promise<void>;
  /** What `decide` gets to see of the stored document. */
  present?<T extends Doc>(doc: T): T;
}

type Run = <R>(options: CallOptions | undefined, step: () => R) => Promise<R>;

export function localStore(engine: Engine, clock: Clock, report: Report): Store {
  const opened = new Map<string, { declaration: Declaration; collection: Promise<unknown> }>();

  const run: Run = async (options, step) => {
    if (options?.deadline !== undefined && clock() >= options.deadline) {
      throw new Unavailable(false, new Error("the deadline had passed before the store was asked"));
    }
    return engine.run(step);
  };

  const openCollection = async (declaration: Declaration) => {
    checkDeclaration(declaration);
    return localCollection({
      declaration,
      table: await engine.table(declaration),
      run,
      report,
      present: engine.present,
    });
  };

  return {
    collection<T extends Doc, const I extends Indexes<T>>({ name, indexes, shape }: Schema<T, I>) {
      const declaration: Declaration = { name, indexes, shape };
      const known = opened.get(name) ?? { declaration, collection: openCollection(declaration) };
      opened.set(name, known);
      if (isDeepStrictEqual(known.declaration, declaration)) return known.collection as Promise<Collection<T, I>>;
      return Promise.reject(new TypeError(`The collection ${name} is already open with another schema.`));
    },
    nextId: (sequence, options) =>
      run(options, () => {
        checkId(sequence);
        return engine.next(sequence);
      }),
    ping: (options) => run(options, () => undefined),
    close: () => engine.close(),
  };
}

interface Parts extends Pick<Engine, "present"> {
  readonly declaration: Declaration;
  readonly table: Table;
  readonly run: Run;
  readonly report: Report;
}

function localCollection<T extends Doc, I extends Indexes<T>>({
  declaration,
  table,
  run,
  report,
  present = (doc) => doc,
}: Parts): Collection<T, I> {
  const keys = indexedFields(declaration);

  const docOf = ({ _id, doc: bytes }: Row): T => {
    const doc = decode<T>(bytes, declaration);
    if (doc._id === _id) return doc;
    throw new Corrupt(`Document ${_id} of ${declaration.name} has the _id ${doc._id}: restore a backup.`);
  };
  const find = (_id: Id): Row[] => {
    checkId(_id);
    const doc = table.get(_id);
    return doc ? [{ _id, doc }] : [];
  };
  const read = (id: Id): T | undefined => find(id).map(docOf)[0];

  function page(scan: Scan, strict = false): T[] {
    for (const limit of attemptsAt(scan.limit)) {
      const rows = table.list({ ...scan, limit });
      const found = strict ? rows.map(docOf) : readable(rows, docOf, report);
      if (found.length >= scan.limit || rows.length < limit) return found.slice(0, scan.limit);
    }
    throw tooMany(declaration.name);
  }

  return {
    get: (id, options) => run(options, () => read(id)),
    getMany: (ids, options) => run(options, () => readable([...new Set(ids)].flatMap(find), docOf, report)),
    list: (query: ListQuery<Where<T, I>>, options) =>
      run(options, () => page(checkQuery(declaration, query), query.strict)),
    update: <R>(id: Id, decide: Decide<T, R>, options?: CallOptions) =>
      run(options, () => {
        const stored = read(id);
        const { result, next } = successor(id, stored && present(stored), decide);
        if (next) {
          checkKeys(next.doc, keys);
          table.put(id, next.bytes, next.doc);
        }
        return result;
      }),
    remove: (id, isOver, options) =>
      run(options, () => {
        const stored = read(id);
        if (stored && isOver(present(stored))) table.delete(id);
      }),
  };
}
