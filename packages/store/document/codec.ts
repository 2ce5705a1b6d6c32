/** What all engines share about documents: checking ids, encoding and decoding. */
import { createRequire } from "node:module";
import { Corrupt, type Doc, type DocumentSchema, type Id } from "../port.ts";
import { readBson } from "./read-bson.ts";

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
    throw new Corrupt(`Document ${String(peek(bytes)._id)} of ${name} can't be read: restore a backup.`, {
      cause,
      collection: name,
    });
  }
  if (!Number.isSafeInteger(doc.rev) || doc._id === undefined) {
    throw new Corrupt(`Document ${String(doc._id)} of ${name} has no revision: restore a backup.`, {
      collection: name,
    });
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
