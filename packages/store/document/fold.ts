/**
 * Several successive changes of one document, of which only the final document is stored: how each is decided, what of its
 * successor is taken, and what change events say about it.
 */
import { isDeepStrictEqual } from "node:util";
import type { Declaration } from "../engine/collections.ts";
import { checkKeys } from "../engine/queries.ts";
import type { Change, Decide, Doc, Id } from "../port.ts";
import { encode, type Fields } from "./codec.ts";

/** How long deciding may go on before other work gets its turn, in milliseconds. */
export const MAX_FOLD_MS = 10;

export type Fold<T extends Doc> = ReturnType<typeof fold<T>>;

/** `stored` is frozen, and so is every successor. `keys` are the indexed fields. */
export function fold<T extends Doc>(id: Id, stored: T | undefined, keys: readonly string[]) {
  let doc = stored;
  let isChanged = false;

  return {
    /** The document as the last change left it. */
    get doc() {
      return doc;
    },
    /** True when it differs from the stored document. */
    get isChanged() {
      return isChanged;
    },
    /** Decides on the document as the changes before left it. If it throws, nothing has changed. */
    update<R>(decide: Decide<T, R>): R {
      const rev = (doc?.rev ?? 0) + 1;
      const decision = decide(doc, rev);
      if (decision.action === "keep") return decision.result;
      if (decision.action !== "put") throw new TypeError("A decision is made by keep(...) or put(...), at once.");
      const next: Fields & { readonly _id: Id } = { ...decision.doc, rev };
      if (next._id !== id) throw new TypeError(`The successor of document ${id} has the _id ${String(next._id)}.`);
      checkKeys(next, keys);
      doc = frozen(copyOf(next)) as unknown as T;
      isChanged = true;
      return decision.result;
    },
    remove(isOver: (doc: T) => boolean): void {
      if (!doc || !isOver(doc)) return;
      doc = undefined;
      isChanged = true;
    },
  };
}

/** MongoDB's limits, for data may move between engines, less 16 KiB for the fields with `RESERVED_PREFIX`. */
const MAX_BYTES = 16 * 1024 * 1024 - 16 * 1024;
const MAX_DEPTH = 100;

/** The prefix of fields that an engine keeps beside those of the document. */
const RESERVED_PREFIX = "_";

/** The path of a value. It becomes text only for an error. */
type Path = (string | number)[];

/**
 * A deep copy. The same walk refuses what would not come back from BSON unchanged: throws a TypeError or RangeError for that,
 * and for a document larger than 16 MiB.
 */
export function copyOf<T extends Fields>(doc: T): T {
  for (const name of Object.keys(doc)) {
    if (name.startsWith(RESERVED_PREFIX) && name !== "_id") {
      throw new TypeError(`${name}: only _id may begin with ${RESERVED_PREFIX}.`);
    }
  }
  const copy = copyObject(doc, []) as T;
  if (encode(copy).length <= MAX_BYTES) return copy;
  throw new RangeError(`Document ${String(doc._id)} is larger than 16 MiB, which is the limit.`);
}

function copyValue(value: unknown, path: Path): unknown {
  if (path.length > MAX_DEPTH) {
    throw new RangeError(`${place(path).slice(0, 40)}... is nested deeper than ${MAX_DEPTH} levels.`);
  }
  switch (typeof value) {
    case "undefined":
    case "boolean":
      return value;
    case "string":
      if (!value.isWellFormed()) throw new TypeError(`${place(path)} holds half a character (a lone surrogate).`);
      return value;
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${place(path)} is ${value}, which JSON lacks.`);
      if (Number.isInteger(value) && !Number.isSafeInteger(value))
        throw new RangeError(`${place(path)} is an integer beyond 2^53-1, which is not exact.`);
      return value;
    case "object": {
      if (value === null) return null;
      if (Array.isArray(value)) return copyArray(value, path);
      const prototype = Object.getPrototypeOf(value);
      if (prototype === null || prototype === Object.prototype) return copyObject(value as Fields, path);
      throw new TypeError(`${place(path)} is neither a plain object nor an array or a simple value.`);
    }
    default:
      throw new TypeError(`${place(path)} is a ${typeof value}, which can't be stored.`);
  }
}

/** An undefined item becomes null, because an array can't lack an item. */
function copyArray(items: readonly unknown[], path: Path): unknown[] {
  const copy: unknown[] = [];
  for (let i = 0; i < items.length; i++) {
    path.push(i);
    copy.push(copyValue(items[i], path) ?? null);
    path.pop();
  }
  return copy;
}

/** Leaves out fields that are undefined. */
function copyObject(fields: Fields, path: Path): Fields {
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    path.push(name);
    if (name.startsWith("$") || name.includes("\0") || name === "_bsontype" || !name.isWellFormed()) {
      throw new TypeError(`${place(path)}: a field can't have this name.`);
    }
    const value = copyValue(fields[name], path);
    path.pop();
    if (value === undefined) continue;
    if (name !== "__proto__") copy[name] = value;
    else Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

/** Such as "extra.tags[2]". */
const place = (path: Path): string =>
  path.map((part, i) => (typeof part === "number" ? `[${part}]` : `${i === 0 ? "" : "."}${part}`)).join("");

/** Freezes the document and all that it holds, so that several callers can share it. */
export function frozen<T extends object>(doc: T): T {
  Object.freeze(doc);
  for (const member of Object.values(doc)) if (typeof member === "object" && member !== null) frozen(member);
  return doc;
}

/** What change events say about a change of a document. */
export type ShownChange = Pick<Change<object>, "type" | "shown" | "former" | "noted">;

/** The part of a schema that determines change events. */
export interface View<T> {
  readonly shown: (doc: T) => object | undefined;
  readonly tracked?: readonly string[] | undefined;
  readonly noted?: ((doc: T) => string | undefined) | undefined;
}

export const viewOf = <T>({ shown, tracked, noted }: Declaration): View<T> | undefined =>
  shown && { shown: shown as View<T>["shown"], tracked, noted: noted as View<T>["noted"] };

/** Undefined when the change is not visible. */
export function shownChange<T>(
  { shown, tracked = [], noted }: View<T>,
  before: T | undefined,
  after: T,
): ShownChange | undefined {
  const was = before && shown(before);
  const is = shown(after);
  const change = (news: ShownChange): ShownChange => {
    const note = noted?.(after);
    return note === undefined ? news : { ...news, noted: note };
  };
  if (is === undefined) return was && change({ type: "deleted", shown: was });
  if (was === undefined) return change({ type: "created", shown: is });
  if (isDeepStrictEqual(was, is)) return undefined;
  const part = (whole: Fields): Fields =>
    Object.fromEntries(tracked.map((name) => [name, whole[name]]).filter(([, value]) => value !== undefined));
  const former = part(was as Fields);
  const isTracked = !isDeepStrictEqual(former, part(is as Fields));
  return change({ type: "updated", shown: is, ...(isTracked && { former }) });
}
