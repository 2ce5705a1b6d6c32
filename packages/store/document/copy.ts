/** Deep copies of documents. The same walk refuses values that would not come back from BSON unchanged. */
import { encode, type Fields } from "./codec.ts";

/** MongoDB's limits, for data may move between engines, less 16 KiB for the fields with `RESERVED_PREFIX`. */
const MAX_BYTES = 16 * 1024 * 1024 - 16 * 1024;
const MAX_DEPTH = 100;

/** The prefix of fields that an engine keeps beside those of the document. */
const RESERVED_PREFIX = "_";

/** The path of a value. It becomes text only for an error. */
type Path = (string | number)[];

/** Throws a TypeError or RangeError for a document that can't come back as it went in, or is larger than 16 MiB. */
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
      checkNumber(value, path);
      return value;
    case "object":
      return copyNested(value, path);
    default:
      throw new TypeError(`${place(path)} is a ${typeof value}, which can't be stored.`);
  }
}

function checkNumber(value: number, path: Path): void {
  if (!Number.isFinite(value)) throw new TypeError(`${place(path)} is ${value}, which JSON lacks.`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new RangeError(`${place(path)} is an integer beyond 2^53-1, which is not exact.`);
  }
}

function copyNested(value: object | null, path: Path): unknown {
  if (value === null) return null;
  if (Array.isArray(value)) return copyArray(value, path);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) {
    throw new TypeError(`${place(path)} is neither a plain object nor an array or a simple value.`);
  }
  return copyObject(value as Fields, path);
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
