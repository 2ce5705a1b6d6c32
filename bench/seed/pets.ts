/** The pets that every peer is filled with. Each is computed from its id, so that all peers have the same ones. */
import { seededRandom } from "@petstore/runtime/clock";

export interface SeedPet {
  readonly id: number;
  readonly name: string;
  readonly categoryId: number;
  readonly status: "available" | "pending" | "sold";
  /** Units in stock. */
  readonly quantity: number;
}

/** With 10,000 pets each category has 25. */
export const CATEGORIES = 400;
/** More units of a pet than any run takes. */
const STOCK = 1_000_000;
const GIVEN = ["Rex", "Bella", "Max", "Luna", "Charlie", "Daisy", "Rocky", "Molly", "Buddy", "Sadie", "Duke", "Maggie"];
const FAMILY = ["Whiskers", "Pawson", "of Barking", "the Brave", "McFluff", "Longtail"];

/** About 16 of 20 pets are for sale, 3 on hold and 1 sold. */
export function petOf(id: number): SeedPet {
  const random = seededRandom(id);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const name = `${pick(GIVEN)} ${pick(FAMILY)} ${id}`;
  const part = random() * 20;
  const categoryId = 1 + (id % CATEGORIES);
  if (part < 16) return { id, name, categoryId, status: "available", quantity: STOCK };
  return part < 19
    ? { id, name, categoryId, status: "pending", quantity: 1 }
    : { id, name, categoryId, status: "sold", quantity: 0 };
}
