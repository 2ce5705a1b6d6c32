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

export interface Table {
  get(id: Id): Uint8Array | undefined;
  /** Inserts or replaces. `doc` is what the bytes stand for, for the indexes. */
  put(id: Id, bytes: Uint8Array, doc: Fields): void;
  delete(id: Id): void;
  list(scan: Scan): Uint8Array[];
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

export function localStore(engine: Engine, clock: Clock): Store {
  const opened = new Map<string, { declaration: Declaration; collection: Promise<unknown> }>();

  const run: Run = async (options, step) => {
    if (options?.deadline !== undefined && clock() >= options.deadline) {
      throw new Unavailable(false, new Error("the deadline had passed before the store was asked"));
    }
    return engine.run(step);
  };

  const openCollection = async (declaration: Declaration) => {
    checkDeclaration(declaration);
    return localCollection(declaration, await engine.table(declaration), run, engine.present);
  };

  return {
    collection<T extends Doc, const I extends Indexes<T>>(schema: Schema<T, I>) {
      const declaration: Declaration = { name: schema.name, indexes: schema.indexes };
      const known = opened.get(schema.name) ?? { declaration, collection: openCollection(declaration) };
      opened.set(schema.name, known);
      if (isDeepStrictEqual(known.declaration, declaration)) return known.collection as Promise<Collection<T, I>>;
      return Promise.reject(new TypeError(`The collection ${schema.name} is already open with other indexes.`));
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

function localCollection<T extends Doc, I extends Indexes<T>>(
  declaration: Declaration,
  table: Table,
  run: Run,
  present: <D extends Doc>(doc: D) => D = (doc) => doc,
): Collection<T, I> {
  const keys = indexedFields(declaration);

  const read = (id: Id): T | undefined => {
    checkId(id);
    const bytes = table.get(id);
    return bytes && decode<T>(bytes, declaration.name);
  };

  return {
    get: (id, options) => run(options, () => read(id)),
    getMany: (ids, options) => run(options, () => [...new Set(ids)].map(read).filter((doc) => doc !== undefined)),
    list: (query: ListQuery<Where<T, I>>, options) =>
      run(options, () => {
        const scan = checkQuery(declaration, query);
        return table.list(scan).map((bytes) => decode<T>(bytes, declaration.name));
      }),
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
