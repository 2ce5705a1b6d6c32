/** The part of a list that is shown, and how it changes with a record. Pure. */

/** The records of a list up to some place in its order. */
export interface Listing<T> {
  readonly items: readonly T[];
  /**
   * The last record that was read, even if it has gone since: what follows it comes with the next page. Undefined at the
   * list's end.
   */
  readonly end: number | undefined;
}

export interface Change<T> {
  /** The current state, or the last one of a deleted record. */
  readonly record: T;
  readonly isDeleted: boolean;
}

/** Which records a list has, and in which order. */
export interface ListRules<T> {
  readonly idOf: (record: T) => number;
  readonly matches: (record: T) => boolean;
  readonly isAscending: boolean;
}

/**
 * The listing after a change. The record goes where the server would put it; a new one beyond the part that was read is left
 * out. A record that is not newer than the shown one changes nothing: the answer to a write may overtake the event of an
 * earlier one.
 */
export function applyChange<T extends { readonly etag: string }>(
  listing: Listing<T>,
  { record, isDeleted }: Change<T>,
  { idOf, matches, isAscending }: ListRules<T>,
): Listing<T> {
  const id = idOf(record);
  const { items, end } = listing;
  const shown = items.find((item) => idOf(item) === id);
  if (shown && !isDeleted && revision(shown.etag) >= revision(record.etag)) return listing;
  if (isDeleted || !matches(record)) {
    return shown ? { items: items.filter((item) => item !== shown), end } : listing;
  }
  if (shown) return { items: items.map((item) => (item === shown ? record : item)), end };
  const follows = (one: number, other: number) => (isAscending ? one > other : one < other);
  if (end !== undefined && follows(id, end)) return listing;
  const place = items.findIndex((item) => follows(idOf(item), id));
  return { items: items.toSpliced(place < 0 ? items.length : place, 0, record), end };
}

/** The revision in an entity tag of the petstore. NaN for any other tag, which is neither older nor newer. */
const revision = (etag: string): number => Number(/^"(\d+)"$/.exec(etag)?.[1] ?? Number.NaN);
