/** The part of a list that is shown, and how it changes with a record. Pure. */

/** The records of a list up to some place in its order. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** Whether nothing follows. */
  readonly isWhole: boolean;
  /** The last record that was read, even if it has gone since. What follows it comes with the next page. */
  readonly end: T | undefined;
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
  /** Negative where the first comes before the second. */
  readonly compare: (one: T, other: T) => number;
}

export const byId =
  <T>(idOf: (record: T) => number, isAscending: boolean) =>
  (one: T, other: T): number =>
    isAscending ? idOf(one) - idOf(other) : idOf(other) - idOf(one);

export interface NamedRecord {
  readonly id: number;
  readonly name: string;
}

/** Whether a name begins with a text, letters without case: as the petstore finds it. */
export function beginsWith(text: string): (record: NamedRecord) => boolean {
  const beginning = new RegExp(`^${text.replaceAll(/[\^$.*+?()[\]{}|/\\]/g, "\\$&")}`, "iu");
  return ({ name }) => beginning.test(name);
}

/** The order of what is found by name. Of rare letters the petstore's may differ: then a newcomer stands a few rows off. */
export function byName(one: NamedRecord, other: NamedRecord): number {
  const [a, b] = [one.name.toLowerCase(), other.name.toLowerCase()];
  return a < b ? -1 : a > b ? 1 : one.id - other.id;
}

/**
 * The listing after a change. The record goes where the server would put it; a new one beyond the part that was read is left
 * out. A record that is not newer than the shown one changes nothing: the answer to a write may overtake the event of an
 * earlier one.
 */
export function applyChange<T extends { readonly etag: string }>(
  listing: Listing<T>,
  { record, isDeleted }: Change<T>,
  { idOf, matches, compare }: ListRules<T>,
): Listing<T> {
  const id = idOf(record);
  const { items, isWhole, end } = listing;
  const shown = items.find((item) => idOf(item) === id);
  if (shown && !isDeleted && revision(shown.etag) >= revision(record.etag)) return listing;
  const others = items.filter((item) => item !== shown);
  const isBeyond = !isWhole && (end === undefined || compare(record, end) > 0);
  if (isDeleted || !matches(record) || isBeyond) return shown ? { ...listing, items: others } : listing;
  const place = others.findIndex((item) => compare(item, record) > 0);
  return { ...listing, items: others.toSpliced(place < 0 ? others.length : place, 0, record) };
}

/** The revision in an entity tag of the petstore. NaN for any other tag, which is neither older nor newer. */
const revision = (etag: string): number => Number(/^"(\d+)"$/.exec(etag)?.[1] ?? Number.NaN);
