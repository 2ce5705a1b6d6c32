/** All guards that have a mutant. */
import { category } from "./guards/category.ts";
import { inventory } from "./guards/inventory.ts";
import { keys } from "./guards/keys.ts";
import { order } from "./guards/order.ts";
import { pet } from "./guards/pet.ts";
import { type Guarded, type Mutant, mutate } from "./mutant.ts";

export const guarded: readonly Guarded[] = [...pet, ...category, ...inventory, ...order, ...keys];

export interface Guard extends Mutant {
  readonly file: string;
}
export const guards: readonly Guard[] = guarded.flatMap(({ file, mutants }) =>
  mutants.map((mutant) => ({ file, ...mutant })),
);

/** Why mutants don't apply, each in a sentence; none if all do. */
export function wrongMutants(root = "."): string[] {
  return guards.flatMap(({ file, ...mutant }) => {
    try {
      mutate(root, file, mutant);
      return [];
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  });
}
