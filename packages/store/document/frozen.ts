/**
 * Frozen documents, which several callers can share because none can change them. A date can't be frozen, so a document
 * with one is handed out as a copy.
 */
import type { Fields } from "./codec.ts";
import { copyOf } from "./copy.ts";

const withDates = new WeakSet<object>();

/** Freezes the document and all that it holds. Nobody else may hold it. */
export function frozen<T extends object>(doc: T): T {
  if (freeze(doc)) withDates.add(doc);
  return doc;
}

/** Freezes deeply. True when there is a date in the value. */
function freeze(value: object): boolean {
  if (value instanceof Date) return true;
  Object.freeze(value);
  let isDated = false;
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name];
    if (typeof member === "object" && member !== null && freeze(member)) isDated = true;
  }
  return isDated;
}

/** The document as it can be handed to a caller: itself, or a copy if there are dates in it. */
export const handedOut = <T extends object>(doc: T): T =>
  withDates.has(doc) ? (frozen(copyOf(doc as Fields)) as T) : doc;
