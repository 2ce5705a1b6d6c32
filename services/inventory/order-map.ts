/**
 * A map from order ids to short values, kept as one string in ascending order of id, such as ";7=2;12=1". The store
 * handles a string as a whole, whereas it checks, encodes and decodes each field of an object separately on every change
 * of the document.
 */
export type OrderMap = string;

export const NO_ORDERS: OrderMap = "";

/** Matches maps whose values are a number of units and a tag, such as "2:Xq3_f0aB". */
export const HELD_MAP = /^(?:;[1-9]\d*=[1-9]\d*:[\w-]+)*$/;
/** Matches maps whose values are C or X. */
export const SETTLED_MAP = /^(?:;[1-9]\d*=[CX])*$/;
/** Matches maps whose values are traceparents. */
export const TRACES_MAP = /^(?:;[1-9]\d*=[\da-f-]{55})*$/;

/** Where the entry after the one at `at` begins. */
const endOf = (map: OrderMap, at: number): number => {
  const end = map.indexOf(";", at + 1);
  return end < 0 ? map.length : end;
};
const orderAt = (map: OrderMap, at: number): number => Number(map.slice(at + 1, map.indexOf("=", at)));

export function valueFor(map: OrderMap, order: number): string | undefined {
  const name = `;${order}=`;
  const at = map.indexOf(name);
  return at < 0 ? undefined : map.slice(at + name.length, endOf(map, at));
}

/** Adds an order that is not in the map. */
export function withOrder(map: OrderMap, order: number, value: string | number): OrderMap {
  // New orders have high numbers, so their place is at or near the end.
  let at = map.length;
  while (at > 0) {
    const last = map.lastIndexOf(";", at - 1);
    if (orderAt(map, last) < order) break;
    at = last;
  }
  return `${map.slice(0, at)};${order}=${value}${map.slice(at)}`;
}

export function withoutOrder(map: OrderMap, order: number): OrderMap {
  const at = map.indexOf(`;${order}=`);
  return at < 0 ? map : map.slice(0, at) + map.slice(endOf(map, at));
}

/** The orders in the map with their values, ascending. */
export function entriesIn(map: OrderMap): [order: number, value: string][] {
  const entries: [number, string][] = [];
  for (let at = 0; at < map.length; at = endOf(map, at)) {
    const order = orderAt(map, at);
    entries.push([order, map.slice(map.indexOf("=", at) + 1, endOf(map, at))]);
  }
  return entries;
}

/** The orders in the map, ascending. */
export const ordersIn = (map: OrderMap): number[] => entriesIn(map).map(([order]) => order);

export function sizeOf(map: OrderMap): number {
  let size = 0;
  for (let at = 0; at < map.length; at = endOf(map, at)) size++;
  return size;
}

/** The highest order in the map, 0 if there is none. */
export const lastIn = (map: OrderMap): number => (map === NO_ORDERS ? 0 : orderAt(map, map.lastIndexOf(";")));

/** The `limit` highest orders of the map. `dropped` is the highest order that had to be left out, if any. */
export function highest(map: OrderMap, limit: number): { readonly map: OrderMap; readonly dropped?: number } {
  let [at, dropped] = [0, undefined as number | undefined];
  for (let excess = sizeOf(map) - limit; excess > 0; excess--) {
    dropped = orderAt(map, at);
    at = endOf(map, at);
  }
  return dropped === undefined ? { map } : { map: map.slice(at), dropped };
}
