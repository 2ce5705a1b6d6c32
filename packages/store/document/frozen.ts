/**
 * What makes a document safe to be handed to several at once: nobody can change it. A date can't be frozen, so a document
 * with one is handed out as a copy.
 */
import type { Fields } from "./codec.ts";
import { copyOf } from "./copy.ts";

const withDates = new WeakSet<object>();

/** Freezes the document and all that it holds. It must belong to nobody else. */
export function frozen<T extends object>(doc: T): T {
  if (freeze(doc)) withDates.add(doc);
  return doc;
}

/** True when there is a date in it. */
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

/** A frozen document as somebody may have it. */
export const handedOut = <T extends object>(doc: T): T =>
  withDates.has(doc) ? (frozen(copyOf(doc as Fields)) as T) : doc;
