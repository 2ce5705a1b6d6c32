/** What every engine does with a document in the same way: judging ids and values, the bytes, the next revision. */
import { deserialize, serialize } from "bson";
import { misfit, type Shape } from "../shape.ts";
import { Corrupt, type Decide, type Doc, type Id } from "./port.ts";

/** MongoDB's limits, kept by every engine so that data can move between them, less the room for `OF_THE_ENGINE`. */
const MAX_BYTES = 16 * 1024 * 1024 - 16 * 1024;
const MAX_DEPTH = 100;

/** How the names of fields begin that an engine keeps beside those of the document. */
const OF_THE_ENGINE = "_";

export type Fields = Readonly<Record<string, unknown>>;

/** What is known of the documents of a collection. */
export interface Kind {
  readonly name: string;
  readonly shape?: Shape<unknown> | undefined;
}

/** Throws a TypeError for what is no `Id`. */
export function checkId(id: unknown): asserts id is Id {
  const good = typeof id === "string" ? id !== "" && id.isWellFormed() : Number.isSafeInteger(id);
  if (!good) throw new TypeError(`${String(id)} is not an _id: use a safe integer or a string that is not empty.`);
}

/** Integers before strings, integers by value, strings by their UTF-8 bytes. */
export function compareIds(a: Id, b: Id): number {
  if (typeof a === "number") return typeof b === "number" ? a - b : -1;
  return typeof b === "string" ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : 1;
}

/** Throws a TypeError or RangeError for a document that can't come back as it went in. */
export function encode(doc: Fields): Uint8Array {
  for (const [name, value] of Object.entries(doc)) {
    if (name.startsWith(OF_THE_ENGINE) && name !== "_id") {
      throw new TypeError(`${name}: only _id may begin with ${OF_THE_ENGINE}.`);
    }
    checkField(name, value, name, 1);
  }
  const bytes = serializeBounded(doc);
  if (bytes === undefined || bytes.length > MAX_BYTES) {
    throw new RangeError(`Document ${String(doc._id)} is larger than 16 MiB, which is the limit.`);
  }
  return bytes;
}

/** `undefined` when the document does not even fit the encoder's buffer. */
function serializeBounded(doc: Fields): Uint8Array | undefined {
  try {
    return serialize(doc, { ignoreUndefined: true });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Throws `Corrupt` for bytes that `encode` can't have made, and for a document of another shape. */
export function decode<T extends Doc>(bytes: Uint8Array, { name, shape }: Kind): T {
  let doc: Partial<Doc>;
  try {
    doc = deserialize(bytes);
  } catch (cause) {
    throw new Corrupt(`Document ${String(peek(bytes)._id)} of ${name} can't be read: restore a backup.`, { cause });
  }
  if (!Number.isSafeInteger(doc.rev) || doc._id === undefined) {
    throw new Corrupt(`Document ${String(doc._id)} of ${name} has no revision: restore a backup.`);
  }
  const wrong = shape && misfit(shape, doc);
  if (wrong !== undefined) {
    throw new Corrupt(
      `Document ${String(doc._id)} of ${name} is not as this petstore writes it (${wrong}): ` +
        "use the version that wrote it, or restore a backup.",
    );
  }
  return doc as T;
}

/** The fields of a document that `decode` may refuse; none when the bytes are no document at all. */
export function peek(bytes: Uint8Array): Fields {
  try {
    return deserialize(bytes, { validation: { utf8: false } });
  } catch {
    return {};
  }
}

export interface Successor<R> {
  readonly result: R;
  /** Absent when the document stays as it is. */
  readonly next?: { readonly doc: Fields; readonly bytes: Uint8Array };
}

/** Runs `decide` on the stored document. Nothing has been stored when it throws. */
export function successor<T extends Doc, R>(id: Id, stored: T | undefined, decide: Decide<T, R>): Successor<R> {
  const rev = (stored?.rev ?? 0) + 1;
  const decision = decide(stored, rev);
  if (decision.action === "keep") return { result: decision.result };
  if (decision.action !== "put") throw new TypeError("A decision is made by keep(...) or put(...), at once.");
  const doc: Fields & { readonly _id: Id } = { ...decision.doc, rev };
  if (doc._id !== id) throw new TypeError(`The successor of document ${id} has the _id ${String(doc._id)}.`);
  return { result: decision.result, next: { doc, bytes: encode(doc) } };
}

function checkField(name: string, value: unknown, path: string, depth: number): void {
  if (name.startsWith("$") || name.includes("\0") || name === "_bsontype" || !name.isWellFormed()) {
    throw new TypeError(`${path}: a field can't have this name.`);
  }
  checkValue(value, path, depth);
}

function checkValue(value: unknown, path: string, depth: number): void {
  if (depth > MAX_DEPTH) throw new RangeError(`${path.slice(0, 40)}... is nested deeper than ${MAX_DEPTH} levels.`);
  switch (typeof value) {
    case "undefined":
    case "boolean":
      return;
    case "string":
      if (!value.isWellFormed()) throw new TypeError(`${path} holds half a character (a lone surrogate).`);
      return;
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${path} is ${value}, which JSON lacks.`);
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
        throw new RangeError(`${path} is an integer beyond 2^53-1, which is not exact.`);
      }
      return;
    case "object":
      checkObject(value, path, depth);
      return;
    default:
      throw new TypeError(`${path} is a ${typeof value}, which can't be stored.`);
  }
}

function checkObject(value: object | null, path: string, depth: number): void {
  if (value === null) return;
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new TypeError(`${path} is not a valid date.`);
    return;
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) checkValue(item, `${path}[${index}]`, depth + 1);
    return;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) {
    throw new TypeError(`${path} is neither a plain object nor an array, a date or a simple value.`);
  }
  for (const [name, item] of Object.entries(value)) checkField(name, item, `${path}.${name}`, depth + 1);
}
