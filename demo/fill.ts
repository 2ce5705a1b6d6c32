/** Creates what the planned shop has and the petstore lacks. */
import type { Petstore } from "@petstore/client";
import type { Bar } from "../bench/progress.ts";
import { ASSORTMENTS } from "./catalogue.ts";
import type { Known, OpenOrder, Pet, Stock } from "./next.ts";
import { missingFrom, type PlannedPet } from "./shop.ts";

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
 * left as it is.
 */
export async function fill(petstore: Petstore, { planned, signal, bar }: Filling): Promise<void> {
  const categories = await openCategories(petstore, signal);
  const present = new Set((await petsOf(petstore, categories, signal)).map(({ name }) => name));
  const missing = missingFrom(present, planned);
  if (missing.length === 0) return;
  using progress = bar(missing.length);
  for (const pet of missing) {
    await addPet(petstore, pet, categories, signal);
    progress.step(1, pet.name);
  }
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
}

async function petsOf(petstore: Petstore, categories: Categories, signal: AbortSignal): Promise<readonly Pet[]> {
  const pets: Pet[] = [];
  for (const categoryId of categories.values())
    for await (const { id, name } of petstore.pets.list({ categoryId }, { signal })) pets.push({ id, name });
  return pets;
}

const PAGE = 100;

/** The planned pets that exist, with their stock, and their most recent open orders. */
export async function look(petstore: Petstore, planned: readonly PlannedPet[], signal: AbortSignal): Promise<Known> {
  const names = new Set(planned.map(({ name }) => name));
  const all = await petsOf(petstore, await openCategories(petstore, signal), signal);
  const pets = new Map(all.filter(({ name }) => names.has(name)).map((pet) => [pet.id, pet]));
  const stocks = new Map<number, Stock>();
  const ids = [...pets.keys()];
  for (let i = 0; i < ids.length; i += PAGE) {
    const items = petstore.inventory.list({ petId: ids.slice(i, i + PAGE) }, { signal });
    for await (const { petId, quantity, status, etag } of items)
      stocks.set(petId, { pet: pets.get(petId) as Pet, quantity, status, etag });
  }
  const open: OpenOrder[] = [];
  for await (const { id, petId } of petstore.orders.list({ complete: false }, { signal })) {
    const pet = petId === undefined ? undefined : pets.get(petId);
    if (pet) open.push({ id, pet });
    if (open.length >= planned.length) break;
  }
  return { stocks, open };
}
