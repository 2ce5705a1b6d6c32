/** A part of a list as it is shown, and what becomes of it when a record changes. Pure. */

/** The records of a list up to some place in its order. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** The last one that was read, whether or not it is still there: what follows it comes with the next page, if anything. */
  readonly end: bigint | undefined;
}

export interface Change<T> {
  /** As it is now, or was at last. */
  readonly record: T;
  readonly isDeleted: boolean;
}

/** Which records a list has, and in which order. */
export interface ListRules<T> {
  readonly idOf: (record: T) => bigint;
  /** The entity tag. */
  readonly etagOf: (record: T) => string;
  readonly matches: (record: T) => boolean;
  readonly isAscending: boolean;
}

/**
 * The listing after a change: the record takes the place that the server would give it, unless this place lies behind what was
 * read. One that is not newer than what is shown changes nothing: the answer to a write may overtake the news of it.
 */
export function applyChange<T>(listing: Listing<T>, { record, isDeleted }: Change<T>, rules: ListRules<T>): Listing<T> {
  const { idOf, etagOf, matches, isAscending } = rules;
  const id = idOf(record);
  const { items, end } = listing;
  const shown = items.find((item) => idOf(item) === id);
  if (shown && !isDeleted && revision(etagOf(shown)) >= revision(etagOf(record))) return listing;
  if (isDeleted || !matches(record)) {
    return shown ? { items: items.filter((item) => item !== shown), end } : listing;
  }
  if (shown) return { items: items.map((item) => (item === shown ? record : item)), end };
  const follows = (one: bigint, other: bigint) => (isAscending ? one > other : one < other);
  if (end !== undefined && follows(id, end)) return listing;
  const place = items.findIndex((item) => follows(idOf(item), id));
  return { items: items.toSpliced(place < 0 ? items.length : place, 0, record), end };
}

/** The number in an entity tag of the petstore's. NaN for any other, which is neither older nor newer. */
const revision = (etag: string): number => Number(/^"(\d+)"$/.exec(etag)?.[1] ?? Number.NaN);
