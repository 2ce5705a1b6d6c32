/** Documents of the petstore as its services would have written them: by the services' rules, change by change. */
import type { Decision, Doc } from "@petstore/store/port";
import { CATEGORIES } from "../../services/category/model.ts";
import { INVENTORY } from "../../services/inventory/model.ts";
import { ORDERS } from "../../services/order/model.ts";
import { PETS } from "../../services/pet/model.ts";
import { allFolded, foldedNameOf, MARKS, type NamedRecord, type NameOf } from "../../services/records/folded-names.ts";
import { KEYS } from "../../services/records/key-transitions.ts";

export const SCHEMAS = {
  pet: { pets: PETS, keys: KEYS, marks: MARKS },
  inventory: { inventory: INVENTORY },
  order: { orders: ORDERS, keys: KEYS },
  category: { categories: CATEGORIES, marks: MARKS },
} as const;
export type Service = keyof typeof SCHEMAS;
export const SERVICES = Object.keys(SCHEMAS) as Service[];

export interface Written {
  readonly service: Service;
  readonly collection: string;
  /** The document after each of its changes; the last state is the final one. */
  readonly states: readonly Doc[];
}

export type Change<T extends Doc> = (doc: T | undefined, rev: number) => Decision<T, unknown>;

/** Applies changes to a document as the store would. */
export function history<T extends Doc>(...first: readonly Change<T>[]) {
  const states: T[] = [];
  const change = (decide: Change<T>): void => {
    const doc = states.at(-1);
    const rev = (doc?.rev ?? 0) + 1;
    const decision = decide(doc, rev);
    if (decision.action === "put") states.push({ ...decision.doc, rev } as T);
  };
  for (const decide of first) change(decide);
  return { states, change, now: () => states.at(-1) as T };
}

/** The states with their folded names, as services store them. */
export const named = <T extends NamedRecord>(states: readonly T[], nameOf: NameOf<T>): T[] =>
  states.map((doc) => ({ ...doc, foldedName: foldedNameOf(doc, nameOf) }));

/** They say that all records have their folded names. */
export const marks: readonly Written[] = (["pet", "category"] as const).map((service) => ({
  service,
  collection: "marks",
  states: [allFolded],
}));
