/**
 * Reads the part of BSON (https://bsonspec.org/spec.html) that this store writes, in a fraction of the time that the
 * library takes. Everything else, and malformed bytes, are left to the library.
 */
import type { Fields } from "./codec.ts";

const DOUBLE = 1;
const STRING = 2;
const OBJECT = 3;
const ARRAY = 4;
const BOOLEAN = 8;
const DATE = 9;
const NULL = 10;
const INT32 = 16;

const DOLLAR = 36;
/** More levels than a document may have (`copy.ts`). */
const MAX_DEPTH = 110;

/** Thrown and caught in this file when the bytes are left to the library. */
const NOT_OURS = Symbol("not ours");

/** The same result as the library's. Undefined for bytes that are left to the library. */
export function readBson(bytes: Uint8Array): Fields | undefined {
  const reader = new Reader(bytes);
  try {
    return reader.document(bytes.length, 0);
  } catch (thrown) {
    if (thrown === NOT_OURS) return undefined;
    throw thrown;
  }
}

class Reader {
  private readonly bytes: Uint8Array;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** A document that ends before `limit`, or right there if it is the outermost. */
  document(limit: number, depth: number): Record<string, unknown> {
    const end = this.end(limit, depth);
    if (depth === 0 && end !== limit) throw NOT_OURS;
    const members: Record<string, unknown> = {};
    for (let type = this.type(end); type !== 0; type = this.type(end)) {
      const name = this.name(end);
      members[name] = this.value(type, end, depth);
    }
    if (this.at !== end) throw NOT_OURS;
    return members;
  }

  private array(limit: number, depth: number): unknown[] {
    const end = this.end(limit, depth);
    const items: unknown[] = [];
    for (let type = this.type(end); type !== 0; type = this.type(end)) {
      // Items are taken by position, as in the library; their names are ignored.
      while (this.bytes[this.at++] !== 0) if (this.at >= end) throw NOT_OURS;
      items.push(this.value(type, end, depth));
    }
    if (this.at !== end) throw NOT_OURS;
    return items;
  }

  private value(type: number, end: number, depth: number): unknown {
    switch (type) {
      case INT32:
        return this.int32(end);
      case STRING:
        return this.string(end);
      case OBJECT:
        return this.document(end, depth + 1);
      case ARRAY:
        return this.array(end, depth + 1);
      case BOOLEAN: {
        const value = this.type(end);
        if (value > 1) throw NOT_OURS;
        return value === 1;
      }
      case DOUBLE: {
        const from = this.advance(8, end);
        for (let i = 0; i < 8; i++) DOUBLE_BYTES[i] = this.bytes[from + i] as number;
        return DOUBLES[0];
      }
      case DATE: {
        const low = this.int32(end) >>> 0;
        return new Date(this.int32(end) * 2 ** 32 + low);
      }
      case NULL:
        return null;
      default:
        throw NOT_OURS;
    }
  }

  /** Reads the length of a document and returns where it ends. */
  private end(limit: number, depth: number): number {
    const from = this.at;
    const size = this.int32(limit);
    if (size < 5 || size > limit - from || depth > MAX_DEPTH) throw NOT_OURS;
    return from + size;
  }

  private type(end: number): number {
    return this.bytes[this.advance(1, end)] as number;
  }

  private int32(end: number): number {
    const from = this.advance(4, end);
    const { bytes } = this;
    return (
      (bytes[from] as number) |
      ((bytes[from + 1] as number) << 8) |
      ((bytes[from + 2] as number) << 16) |
      ((bytes[from + 3] as number) << 24)
    );
  }

  /** Skips `count` bytes and returns where they begin. */
  private advance(count: number, end: number): number {
    const from = this.at;
    this.at = from + count;
    if (this.at > end) throw NOT_OURS;
    return from;
  }

  private name(end: number): string {
    const from = this.at;
    const { bytes } = this;
    let to = from;
    let hash = 0;
    for (let byte = bytes[to] as number; byte !== 0; byte = bytes[++to] as number) {
      if (byte > 127 || to >= end) throw NOT_OURS;
      hash = (hash * 31 + byte) | 0;
    }
    this.at = to + 1;
    const name = NAMES.text(bytes, from, to, hash);
    if (bytes[from] === DOLLAR || name === "__proto__") throw NOT_OURS;
    return name;
  }

  private string(end: number): string {
    const size = this.int32(end);
    const from = this.at;
    if (size <= 0 || size > end - from) throw NOT_OURS;
    const to = from + size - 1;
    const { bytes } = this;
    if (bytes[to] !== 0) throw NOT_OURS;
    this.at = to + 1;
    let hash = 0;
    for (let i = from; i < to; i++) {
      const byte = bytes[i] as number;
      if (byte > 127) return utf8(bytes, from, to);
      hash = (hash * 31 + byte) | 0;
    }
    return to - from > MAX_KNOWN ? latin1(bytes, from, to) : TEXTS.text(bytes, from, to, hash);
  }
}

const DOUBLES = new Float64Array(1);
const DOUBLE_BYTES = new Uint8Array(DOUBLES.buffer);

const slices = Buffer.prototype as unknown as Record<
  "latin1Slice" | "utf8Slice",
  (this: Uint8Array, from: number, to: number) => string
>;
const latin1 = (bytes: Uint8Array, from: number, to: number): string => slices.latin1Slice.call(bytes, from, to);

function utf8(bytes: Uint8Array, from: number, to: number): string {
  const text = slices.utf8Slice.call(bytes, from, to);
  // The replacement character stands for invalid UTF-8.
  if (text.includes("\ufffd")) throw NOT_OURS;
  return text;
}

const MAX_KNOWN = 32;

/** A cache of ASCII strings that were read last: most names and many values recur. */
class KnownTexts {
  private readonly known: string[];

  constructor(size: number) {
    this.known = Array.from({ length: size }, () => "");
  }

  text(bytes: Uint8Array, from: number, to: number, hash: number): string {
    const place = (hash ^ (hash >>> 10)) & (this.known.length - 1);
    const known = this.known[place] as string;
    if (isSame(known, bytes, from, to)) return known;
    const text = latin1(bytes, from, to);
    this.known[place] = text;
    return text;
  }
}
const NAMES = new KnownTexts(1024);
const TEXTS = new KnownTexts(1024);

function isSame(text: string, bytes: Uint8Array, from: number, to: number): boolean {
  if (text.length !== to - from) return false;
  for (let i = from; i < to; i++) if (text.charCodeAt(i - from) !== bytes[i]) return false;
  return true;
}
