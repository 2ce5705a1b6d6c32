/** The collections of a store as all engines open them: as they are declared, and each of them once. */
import { isDeepStrictEqual } from "node:util";
import type { Kind } from "../document/codec.ts";
import type { Collection, Doc, Indexes, Schema } from "../port.ts";

/** The part of a `Schema` that an engine works with. */
export interface Declaration extends Kind {
  readonly indexes: Readonly<Record<string, readonly string[]>>;
  readonly shown?: ((doc: never) => unknown) | undefined;
  readonly tracked?: readonly string[] | undefined;
  readonly noted?: ((doc: never) => string | undefined) | undefined;
}

/** Throws a TypeError for a collection that not every engine could hold. */
export function checkDeclaration({ name, indexes }: Declaration): void {
  if (!/^[a-z][a-z0-9_]*$/i.test(name)) throw new TypeError(`"${name}" can't be the name of a collection.`);
  for (const [index, fields] of Object.entries(indexes)) {
    if (fields.length === 0) throw new TypeError(`Index ${index} of ${name} has no fields.`);
    if (new Set(fields).size < fields.length) throw new TypeError(`Index ${index} of ${name} names a field twice.`);
  }
}

export const indexedFields = ({ indexes }: Declaration): string[] => [...new Set(Object.values(indexes).flat())];

/** The collections of a store. Each is opened once, with one schema. */
export function createCollections(open: (declaration: Declaration) => Promise<unknown>) {
  const opened = new Map<string, { declaration: Declaration; collection: Promise<unknown> }>();
  return <T extends Doc, const I extends Indexes<T>, V>(schema: Schema<T, I, V>) => {
    const { name, indexes, document, shown, tracked, noted } = schema;
    const declaration: Declaration = { name, indexes, document, shown, tracked, noted };
    const known = opened.get(name) ?? { declaration, collection: open(declaration) };
    opened.set(name, known);
    if (isDeepStrictEqual(known.declaration, declaration)) return known.collection as Promise<Collection<T, I, V>>;
    return Promise.reject(new TypeError(`The collection ${name} is already open with another schema.`));
  };
}
