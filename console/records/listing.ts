/** A part of a list as it is shown, and what becomes of it when a record changes. Pure. */

/** The records of a list up to some place in its order. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** Nothing comes behind the last one. */
  readonly isWhole: boolean;
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
 * The listing after a change: the record takes the place that the server would give it, unless this place lies behind what is
 * shown. One that is not newer than what is shown changes nothing: the answer to a write may overtake the news of it.
 */
export function applyChange<T>(listing: Listing<T>, { record, isDeleted }: Change<T>, rules: ListRules<T>): Listing<T> {
  const { idOf, etagOf, matches, isAscending } = rules;
  const id = idOf(record);
  const { items, isWhole } = listing;
  const shown = items.find((item) => idOf(item) === id);
  if (shown && !isDeleted && revision(etagOf(shown)) >= revision(etagOf(record))) return listing;
  if (isDeleted || !matches(record)) {
    return shown ? { items: items.filter((item) => item !== shown), isWhole } : listing;
  }
  if (shown) return { items: items.map((item) => (item === shown ? record : item)), isWhole };
  const place = items.findIndex((item) => idOf(item) < id !== isAscending);
  if (place >= 0) return { items: items.toSpliced(place, 0, record), isWhole };
  return isWhole ? { items: [...items, record], isWhole } : listing;
}

/** The number in an entity tag of the petstore's. NaN for any other, which is neither older nor newer. */
const revision = (etag: string): number => Number(/^"(\d+)"$/.exec(etag)?.[1] ?? Number.NaN);
