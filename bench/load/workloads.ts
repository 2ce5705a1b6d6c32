/** The workloads. Each is a list of requests drawn from a seed: every peer gets the same list. */

import { seededRandom } from "../../packages/runtime/fixtures/random.ts";
import { CATEGORIES, petOf } from "../seed/pets.ts";
import { upTo } from "../seed/random.ts";

export interface Request {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
}

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
const order = (pets: number, random: () => number): Request => ({
  method: "POST",
  path: "/store/orders",
  body: JSON.stringify({ petId: forSale(pets, random), quantity: 1 }),
});

const USUAL = [1, 16, 50];

/** Not compared on its own, since `mixed` contains it. */
export const orders: Workload = {
  ...{ name: "orders", title: "one unit of a pet is ordered, any of those for sale", connections: USUAL },
  request: order,
};

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
  { name: "hot", title: "one pet, by all clients", connections: [64], request: (pets) => get(Math.ceil(pets / 2)) },
];

/** Length of the list of requests, which is repeated from the start. */
const LENGTH = 20_000;

export function requestsOf(workload: Workload, pets: number, seed: number): Request[] {
  const random = seededRandom(seed);
  return Array.from({ length: LENGTH }, () => workload.request(pets, random));
}
