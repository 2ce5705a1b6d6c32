/** Documents as bytes of BSON, and their ids: what all engines share. */
import { createRequire } from "node:module";
import { Corrupt, type Doc, type DocumentSchema, type Id } from "../port.ts";
import type { Row } from "../rows.ts";

// Loaded with `require` as MongoDB's driver does: an import would load a second copy.
const { deserialize, serialize } = createRequire(import.meta.url)("bson") as typeof import("bson");

export type Fields = Readonly<Record<string, unknown>>;

/** The name of a collection, and the schema of its documents. */
export interface Kind {
  readonly name: string;
  readonly document?: DocumentSchema<unknown> | undefined;
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

/** The bytes of a document that `copyOf` has made. */
export const encode = (doc: Fields): Uint8Array => serialize(doc);

/** Throws `Corrupt` for bytes that `encode` can't have made, and for a document that its schema refuses. */
export function decode<T extends Doc>(bytes: Uint8Array, { name, document }: Kind): T {
  let doc: Partial<Doc>;
  try {
    doc = readBson(bytes) ?? deserialize(bytes);
  } catch (cause) {
    const id = String(peek(bytes)._id);
    throw new Corrupt(`Document ${id} of ${name} can't be read: restore a backup.`, { cause, collection: name });
  }
  if (!Number.isSafeInteger(doc.rev) || doc._id === undefined) {
    const id = String(doc._id);
    throw new Corrupt(`Document ${id} of ${name} has no revision: restore a backup.`, { collection: name });
  }
  const wrong = document?.(doc);
  if (wrong !== undefined) {
    throw new Corrupt(
      `Document ${String(doc._id)} of ${name} is not as this petstore writes it (${wrong}): ` +
        "upgrade it if a newer one wrote this, or restore a backup.",
      { collection: name },
    );
  }
  return doc as T;
}

/** The document of a row of the embedded engine. Throws `Corrupt`. */
export function readRow<T extends Doc>({ _id, doc: bytes }: Row, kind: Kind): T {
  const { name } = kind;
  const doc = decode<T>(bytes, kind);
  if (doc._id === _id) return doc;
  throw new Corrupt(`Document ${_id} of ${name} has the _id ${doc._id}: restore a backup.`, { collection: name });
}

/** The document of bytes as `encode` makes them. Undefined for bytes with anything else, which JSON or `encode` would lose. */
export function decodeSame(bytes: Uint8Array): Fields | undefined {
  const known = readBson(bytes);
  if (known) return known;
  try {
    const doc = JSON.parse(JSON.stringify(deserialize(bytes))) as Fields;
    return Buffer.compare(encode(doc), bytes) === 0 ? doc : undefined;
  } catch {
    return undefined;
  }
}

/** The fields of a document that `decode` may refuse; none when the bytes are no document at all. */
export function peek(bytes: Uint8Array): Fields {
  try {
    return deserialize(bytes, { bsonRegExp: true, validation: { utf8: false } });
  } catch {
    return {};
  }
}

/**
 * Reads the part of BSON (https://bsonspec.org/spec.html) that this store writes, in half the time that the library takes.
 * Everything else, and malformed bytes, are left to the library: undefined. Else the result is the library's.
 */
export function readBson(bytes: Uint8Array): Fields | undefined {
  try {
    const reader = new Reader(bytes);
    const document = reader.document();
    return reader.at === bytes.length ? document : undefined;
  } catch {
    return undefined; // also what Buffer throws for a place beyond its end
  }
}

/** A reader may go beyond the end of a nested document. It then never comes back to that end, where it has to arrive. */
class Reader {
  at = 0;
  private readonly bytes: Buffer;

  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    this.bytes = Buffer.from(buffer, byteOffset, byteLength);
  }

  document(): Record<string, unknown> {
    const end = this.at + this.int32();
    const members: Record<string, unknown> = {};
    for (let type = this.byte(); type !== 0; type = this.byte()) {
      const name = this.name();
      members[name] = this.value(type);
    }
    if (this.at !== end) throw new Error("malformed");
    return members;
  }

  private array(): unknown[] {
    const end = this.at + this.int32();
    const items: unknown[] = [];
    for (let type = this.byte(); type !== 0; type = this.byte()) {
      while (this.byte() !== 0); // items are taken by position, as in the library, and their names ignored
      items.push(this.value(type));
    }
    if (this.at !== end) throw new Error("malformed");
    return items;
  }

  private value(type: number): unknown {
    switch (type) {
      case 1:
        this.at += 8;
        return this.bytes.readDoubleLE(this.at - 8);
      case 2:
        return this.string();
      case 3:
        return this.document();
      case 4:
        return this.array();
      case 8: {
        const value = this.byte();
        if (value > 1) throw new Error("malformed");
        return value === 1;
      }
      case 10:
        return null;
      case 16:
        return this.int32();
      default:
        throw new Error("a type that the store does not write");
    }
  }

  private byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw new Error("malformed");
    return byte;
  }

  private int32(): number {
    this.at += 4;
    return this.bytes.readInt32LE(this.at - 4);
  }

  private name(): string {
    const { at } = this;
    while (this.byte() !== 0);
    const name = NAMES.text(this.bytes, at, this.at - 1);
    if (name.startsWith("$") || name === "__proto__") throw new Error("a name that the store does not write");
    return name;
  }

  private string(): string {
    const size = this.int32();
    const { bytes, at } = this;
    this.at += size;
    if (size <= 0 || bytes.readUInt8(this.at - 1) !== 0) throw new Error("malformed");
    return TEXTS.text(bytes, at, this.at - 1);
  }
}

/** A cache of the short ASCII strings that were read last: most names and many values recur. */
class KnownTexts {
  private readonly known = Array.from({ length: 1024 }, () => "");

  text(bytes: Buffer, from: number, to: number): string {
    if (to - from > 32) return utf8(bytes, from, to);
    let hash = 0;
    for (let i = from; i < to; i++) {
      const byte = bytes[i] as number;
      if (byte > 127) return utf8(bytes, from, to);
      hash = (hash * 31 + byte) | 0;
    }
    const place = (hash ^ (hash >>> 10)) & 1023;
    const known = this.known[place] as string;
    if (isSame(known, bytes, from, to)) return known;
    const text = bytes.toString("latin1", from, to);
    this.known[place] = text;
    return text;
  }
}
const NAMES = new KnownTexts();
const TEXTS = new KnownTexts();

function isSame(text: string, bytes: Buffer, from: number, to: number): boolean {
  if (text.length !== to - from) return false;
  for (let i = from; i < to; i++) if (text.charCodeAt(i - from) !== bytes[i]) return false;
  return true;
}

function utf8(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString("utf8", from, to);
  if (text.includes("\ufffd")) throw new Error("perhaps invalid UTF-8");
  return text;
}
