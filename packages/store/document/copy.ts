/**
 * Deep copies of documents. The same walk refuses values that would not come back from BSON unchanged and counts the
 * bytes of the rest, so that a change costs one walk over its document.
 */
import type { Fields } from "./codec.ts";

/**
 * MongoDB's limits, kept by every engine so that data can move between them, less 16 KiB for the fields with
 * `RESERVED_PREFIX`.
 */
const MAX_BYTES = 16 * 1024 * 1024 - 16 * 1024;
const MAX_DEPTH = 100;

/** The prefix of fields that an engine keeps beside those of the document. */
const RESERVED_PREFIX = "_";

interface Walk {
  /** The path of the current value. It becomes text only for an error. */
  readonly path: (string | number)[];
  /** The size in BSON of the values so far. */
  bytes: number;
}

/** Throws a TypeError or RangeError for a document that can't come back as it went in, or is larger than 16 MiB. */
export function copyOf<T extends Fields>(doc: T): T {
  for (const name of Object.keys(doc)) {
    if (name.startsWith(RESERVED_PREFIX) && name !== "_id") {
      throw new TypeError(`${name}: only _id may begin with ${RESERVED_PREFIX}.`);
    }
  }
  const walk: Walk = { path: [], bytes: 0 };
  const copy = copyObject(doc, walk) as T;
  if (walk.bytes <= MAX_BYTES) return copy;
  throw new RangeError(`Document ${String(doc._id)} is larger than 16 MiB, which is the limit.`);
}

function copyValue(value: unknown, walk: Walk): unknown {
  if (walk.path.length > MAX_DEPTH) {
    throw new RangeError(`${place(walk).slice(0, 40)}... is nested deeper than ${MAX_DEPTH} levels.`);
  }
  switch (typeof value) {
    case "undefined":
      return value;
    case "boolean":
      walk.bytes += 1;
      return value;
    case "string":
      if (!value.isWellFormed()) throw new TypeError(`${place(walk)} holds half a character (a lone surrogate).`);
      walk.bytes += 5 + Buffer.byteLength(value);
      return value;
    case "number":
      checkNumber(value, walk);
      walk.bytes += (value | 0) === value && !Object.is(value, -0) ? 4 : 8;
      return value;
    case "object":
      return copyNested(value, walk);
    default:
      throw new TypeError(`${place(walk)} is a ${typeof value}, which can't be stored.`);
  }
}

function checkNumber(value: number, walk: Walk): void {
  if (!Number.isFinite(value)) throw new TypeError(`${place(walk)} is ${value}, which JSON lacks.`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new RangeError(`${place(walk)} is an integer beyond 2^53-1, which is not exact.`);
  }
}

function copyNested(value: object | null, walk: Walk): unknown {
  if (value === null) return null;
  if (Array.isArray(value)) return copyArray(value, walk);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) {
    throw new TypeError(`${place(walk)} is neither a plain object nor an array or a simple value.`);
  }
  return copyObject(value as Fields, walk);
}

/** An undefined item becomes null, because an array can't lack an item. */
function copyArray(items: readonly unknown[], walk: Walk): unknown[] {
  const copy: unknown[] = [];
  walk.bytes += 5;
  for (let i = 0; i < items.length; i++) {
    walk.path.push(i);
    walk.bytes += 2 + `${i}`.length;
    copy.push(copyValue(items[i], walk) ?? null);
    walk.path.pop();
  }
  return copy;
}

/** Leaves out fields that are undefined. */
function copyObject(fields: Fields, walk: Walk): Fields {
  const copy: Record<string, unknown> = {};
  walk.bytes += 5;
  for (const name of Object.keys(fields)) {
    walk.path.push(name);
    if (name.startsWith("$") || name.includes("\0") || name === "_bsontype" || !name.isWellFormed()) {
      throw new TypeError(`${place(walk)}: a field can't have this name.`);
    }
    const value = copyValue(fields[name], walk);
    walk.path.pop();
    if (value === undefined) continue;
    walk.bytes += 2 + Buffer.byteLength(name);
    if (name !== "__proto__") copy[name] = value;
    else Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

/** Such as "extra.tags[2]". */
const place = ({ path }: Walk): string =>
  path.map((part, i) => (typeof part === "number" ? `[${part}]` : `${i === 0 ? "" : "."}${part}`)).join("");
