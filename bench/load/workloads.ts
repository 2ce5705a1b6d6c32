/** The workloads. Each is a list of requests drawn from a seed: every peer gets the same list. */

import { seededRandom } from "@petstore/runtime/clock";
import { CATEGORIES, petOf } from "../seed/pets.ts";
import { upTo } from "../seed/random.ts";

export interface Request {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** `ORDER_ID` in it stands for the id of an order that was placed before; `known-orders.ts` says of which. */
  readonly path: string;
  readonly body?: string;
  /** With an `Idempotency-Key`: one of its own, or that of the keyed request before it. */
  readonly key?: "new" | "again";
  /** The order is complete or gone afterwards, so nothing else is asked of it. */
  readonly settles?: true;
  /** It must be refused, so that does not count as a failure. */
  readonly isRefused?: true;
}

export const ORDER_ID = "{orderId}";

export interface Workload {
  readonly name: string;
  readonly title: string;
  /** Number of concurrent clients; each waits for its answer before the next request. */
  readonly connections: readonly number[];
  request(pets: number, random: () => number): Request;
}

const PAGE = 20;
const get = (id: number): Request => ({ method: "GET", path: `/pets/${id}` });
const list: Request = { method: "GET", path: `/pets?limit=${PAGE}` };

/** The id of a pet that can be ordered. */
function forSale(pets: number, random: () => number): number {
  for (;;) {
    const id = upTo(pets, random);
    if (petOf(id).status === "available") return id;
  }
}
const ORDERS = "/store/orders";
const order = (pets: number, random: () => number, quantity = 1): Request => ({
  method: "POST",
  path: ORDERS,
  body: JSON.stringify({ petId: forSale(pets, random), quantity }),
});

const USUAL = [1, 16, 50];

/** Not compared on its own, since `mixed` and `orders` contain it. */
export const placing: Workload = {
  ...{ name: "placing", title: "one unit of a pet is ordered, any of those for sale", connections: USUAL },
  request: order,
};

/** More units than any pet has. */
const TOO_MANY = 100_000_000;
const known: Pick<Request, "path"> = { path: `${ORDERS}/${ORDER_ID}` };

/** Of 20 requests, by their places. */
function shopping(pets: number, random: () => number): Request {
  const place = random() * 20;
  if (place < 5) return order(pets, random);
  if (place < 7) return { ...order(pets, random), key: "new" };
  if (place < 8) return { ...order(pets, random, TOO_MANY), isRefused: true };
  if (place < 12) return { method: "GET", ...known };
  if (place < 15) return { method: "GET", path: `${ORDERS}?petId=${forSale(pets, random)}&limit=${PAGE}` };
  if (place < 18) return { method: "PATCH", ...known, body: '{"complete":true}', settles: true };
  return { method: "DELETE", ...known, settles: true };
}

export const workloads: readonly Workload[] = [
  {
    name: "get",
    title: "one pet, any of all",
    connections: USUAL,
    request: (pets, random) => get(upTo(pets, random)),
  },
  { name: "list", title: `the newest ${PAGE} pets, the same page`, connections: USUAL, request: () => list },
  {
    name: "list-filters",
    title: `${PAGE} pets of a category, every other time only those for sale; ${2 * CATEGORIES} different lists`,
    connections: USUAL,
    request(_, random) {
      const status = random() < 0.5 ? "&status=available" : "";
      return { method: "GET", path: `${list.path}&categoryId=${upTo(CATEGORIES, random)}${status}` };
    },
  },
  {
    name: "mixed",
    title: "8 of 10 get, 1 of 10 list, 1 of 10 orders one unit of a pet",
    connections: USUAL,
    request(pets, random) {
      const part = random() * 10;
      if (part < 8) return get(upTo(pets, random));
      return part < 9 ? list : order(pets, random);
    },
  },
  {
    name: "orders",
    title:
      "of 20, 5 order one unit, 2 do so with a key, 1 orders too many, 4 get an order, 3 list those of a pet, 3 complete one, 2 cancel one",
    connections: USUAL,
    request: shopping,
  },
  { name: "hot", title: "one pet, by all clients", connections: [64], request: (pets) => get(Math.ceil(pets / 2)) },
];

/** Length of the list of requests, which is repeated from the start. */
const LENGTH = 20_000;

export function requestsOf(workload: Workload, pets: number, seed: number): Request[] {
  const random = seededRandom(seed);
  return Array.from({ length: LENGTH }, () => workload.request(pets, random));
}
