/** Creates what the planned shop has and the petstore lacks. */
import type { Petstore } from "@petstore/client";
import type { Bar } from "../bench/progress.ts";
import { ASSORTMENTS } from "./catalogue.ts";
import { missingFrom, type PlannedPet } from "./shop.ts";

export interface Pet {
  readonly id: number;
  readonly name: string;
}

/** Ids of the shop's categories by name. */
type Categories = ReadonlyMap<string, number>;

export interface Filling {
  readonly planned: readonly PlannedPet[];
  readonly signal: AbortSignal;
  /** Called once it is known how many pets are missing, if any are. */
  bar(total: number): Bar;
}

/**
 * Pets are recognised by their names in the shop's categories, so repeated runs create nothing twice. An existing pet is
 * left as it is. Resolves to the planned pets.
 */
export async function fill(petstore: Petstore, { planned, signal, bar }: Filling): Promise<readonly Pet[]> {
  const categories = await openCategories(petstore, signal);
  const names = new Set(planned.map(({ name }) => name));
  const pets = (await petsOf(petstore, categories, signal)).filter(({ name }) => names.has(name));
  const missing = missingFrom(new Set(pets.map(({ name }) => name)), planned);
  if (missing.length === 0) return pets;
  using progress = bar(missing.length);
  for (const pet of missing) {
    pets.push(await addPet(petstore, pet, categories, signal));
    progress.step(1, pet.name);
  }
  return pets;
}

async function openCategories(petstore: Petstore, signal: AbortSignal): Promise<Categories> {
  const known = new Map<string, number>();
  for await (const { id, name } of petstore.categories.list({ orderBy: "id" }, { signal }))
    if (!known.has(name)) known.set(name, id);
  const categories = new Map<string, number>();
  for (const { category: name, description } of ASSORTMENTS)
    categories.set(name, known.get(name) ?? (await petstore.categories.create({ name, description }, { signal })).id);
  return categories;
}

async function addPet(petstore: Petstore, planned: PlannedPet, categories: Categories, signal: AbortSignal) {
  const { name, category, listing, stock, orders } = planned;
  const categoryId = categories.get(category) ?? 0;
  const { id: petId } = await petstore.pets.create({ name, categoryId, status: listing }, { signal });
  if (listing === "available" && stock !== 1) await petstore.inventory.update(petId, { quantity: stock }, { signal });
  for (const order of orders) await petstore.orders.create({ petId, ...order }, { signal });
  return { id: petId, name };
}

async function petsOf(petstore: Petstore, categories: Categories, signal: AbortSignal): Promise<Pet[]> {
  const pets: Pet[] = [];
  for (const categoryId of categories.values())
    for await (const { id, name } of petstore.pets.list({ categoryId }, { signal })) pets.push({ id, name });
  return pets;
}
