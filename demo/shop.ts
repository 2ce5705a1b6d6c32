/** The shop that a seed draws: which pets there are, how many of each, and what has been ordered. */
import type { PetStatus } from "@petstore/client";
import { seededRandom } from "@petstore/runtime/clock";
import { shuffled, upTo } from "../bench/seed/random.ts";
import { ASSORTMENTS, NAMES } from "./catalogue.ts";

export interface PlannedPet {
  readonly category: string;
  /** Unique. */
  readonly name: string;
  /** A pet on hold, or sold elsewhere, has no orders. */
  readonly listing: PetStatus;
  /** The stock before anything is ordered. */
  readonly stock: number;
  readonly orders: readonly { readonly quantity: number; readonly complete: boolean }[];
}

const ANIMALS = ASSORTMENTS.flatMap(({ category, breeds }) =>
  breeds.flatMap((breed) => NAMES.map((name) => ({ category, name: `${name} the ${breed}` }))),
);

/** The number of different names. */
export const MAX_PETS = ANIMALS.length;

/** The first pets of a larger shop are those of a smaller one of the same seed. */
export function planShop(seed: number, pets: number): readonly PlannedPet[] {
  const random = seededRandom(seed);
  const animals = shuffled(ANIMALS, random);
  return animals.slice(0, pets).map((animal) => ({ ...animal, ...planStock(random) }));
}

/** Of 20 pets one is on hold and one sold elsewhere. Most of the others have several units, and some are sold out. */
function planStock(random: () => number): Pick<PlannedPet, "listing" | "stock" | "orders"> {
  const part = random() * 20;
  if (part < 1) return { listing: "pending", stock: 1, orders: [] };
  if (part < 2) return { listing: "sold", stock: 0, orders: [] };
  const orders = Array.from({ length: upTo(4, random) - 2 }, () => ({
    quantity: upTo(2, random),
    complete: random() < 0.7,
  }));
  const ordered = orders.reduce((sum, { quantity }) => sum + quantity, 0);
  return { listing: "available", stock: Math.max(1, ordered + Math.max(0, upTo(10, random) - 3)), orders };
}

/** The planned pets that are not there yet, compared by name. */
export const missingFrom = (present: ReadonlySet<string>, planned: readonly PlannedPet[]): readonly PlannedPet[] =>
  planned.filter(({ name }) => !present.has(name));
