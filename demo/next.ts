/** Chooses the next change of a shop from what is known of it. */
import type { PetStatus } from "@petstore/client";

export interface Pet {
  readonly id: number;
  readonly name: string;
}

/** A pet's stock, as it was last seen. */
export interface Stock {
  readonly pet: Pet;
  readonly quantity: number;
  readonly status: PetStatus;
  readonly etag: string;
}

export interface OpenOrder {
  readonly id: number;
  readonly pet: Pet;
}

export interface Known {
  readonly stocks: ReadonlyMap<number, Stock>;
  readonly open: readonly OpenOrder[];
}

export type Change =
  | { readonly kind: "order"; readonly pet: Pet; readonly quantity: number }
  | { readonly kind: "complete" | "cancel"; readonly order: OpenOrder; readonly pet: Pet }
  | { readonly kind: "refill"; readonly pet: Pet; readonly quantity: number; readonly etag: string };

/** An order that was placed, or one that has ended. */
export interface Outcome {
  readonly placed?: OpenOrder | undefined;
  readonly ended?: OpenOrder | undefined;
}

const MAX_REFILL = 12;
const MAX_QUANTITY = 3;

/**
 * The next change. About as many orders are placed as end, with one open for ten pets; of four that end, three are
 * completed. Pets that are sold out are refilled before there are many of them. Undefined when nothing can be done.
 */
export function nextChange({ stocks, open }: Known, random: () => number): Change | undefined {
  const all = [...stocks.values()];
  const forSale = all.filter(({ status }) => status === "available");
  const soldOut = all.filter(({ status }) => status === "sold");
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const fullness = Math.min(1, open.length / Math.max(2, all.length / 5));
  const weights = {
    order: forSale.length > 0 ? 4 * (1 - fullness) : 0,
    complete: 3 * fullness,
    cancel: fullness,
    refill: (10 * soldOut.length) / Math.max(1, all.length),
  };
  switch (drawn(weights, random)) {
    case "order": {
      const { pet, quantity } = pick(forSale);
      return { kind: "order", pet, quantity: 1 + Math.floor(random() * Math.min(MAX_QUANTITY, quantity)) };
    }
    case "complete":
      return ending("complete", pick(open));
    case "cancel":
      return ending("cancel", pick(open));
    case "refill": {
      const { pet, etag } = pick(soldOut);
      return { kind: "refill", pet, quantity: 1 + Math.floor(random() * MAX_REFILL), etag };
    }
    default:
      return undefined;
  }
}

const ending = (kind: "complete" | "cancel", order: OpenOrder): Change => ({ kind, order, pet: order.pet });

/** A random name, with a probability in proportion to its weight; undefined when all weights are 0. */
function drawn<K extends string>(weights: Readonly<Record<K, number>>, random: () => number): K | undefined {
  const names = (Object.keys(weights) as K[]).filter((name) => weights[name] > 0);
  let left = random() * names.reduce((sum, name) => sum + weights[name], 0);
  for (const name of names) {
    left -= weights[name];
    if (left < 0) return name;
  }
  return names.at(-1);
}

export const withOrders = ({ stocks, open }: Known, { placed, ended }: Outcome): Known => ({
  stocks,
  open: [...open.filter(({ id }) => id !== ended?.id), ...(placed ? [placed] : [])],
});

/** `stock` is undefined for a pet that is gone. */
export function withStock({ stocks, open }: Known, pet: Pet, stock: Stock | undefined): Known {
  const others = [...stocks].filter(([id]) => id !== pet.id);
  return { stocks: new Map(stock === undefined ? others : [...others, [pet.id, stock]]), open };
}
