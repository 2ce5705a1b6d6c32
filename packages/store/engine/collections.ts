/** The collections of a store. Each is opened once, with one schema. */
import { isDeepStrictEqual } from "node:util";
import type { Collection, Doc, Indexes, Schema } from "../port.ts";
import type { Declaration } from "./indexes.ts";

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
