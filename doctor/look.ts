/** One look at all that is stored: each record by itself, then beside those that it belongs to. */

import type { Doc, Id } from "@petstore/store/port";
import type { Inspection, Kind } from "@petstore/store/rows";
import manifest from "../package.json" with { type: "json" };
import { type ServiceName, serviceNames } from "../processes/names.ts";
import type { OnProgress } from "../processes/progress.ts";
import { CATEGORIES } from "../services/category/model.ts";
import { INVENTORY } from "../services/inventory/model.ts";
import { MARKS as HIGHEST_ORDER } from "../services/inventory/order-recovery.ts";
import { highestOrder, reservationsIn } from "../services/inventory/rules.ts";
import { ORDERS } from "../services/order/model.ts";
import { DELETION_GUARDS, PETS } from "../services/pet/model.ts";
import { createExpiry } from "../services/records/expiry.ts";
import { MARKS } from "../services/records/folded-names.ts";
import { FORMAT_MARKS, type FormatMark, problemOf } from "../services/records/formats.ts";
import { KEYS, type KeyDoc } from "../services/records/key-transitions.ts";
import { RETENTION } from "../services/records/retention.ts";
import { byItself, CannotLook, createFindings, type Finding, type Findings, finding, seenTwice } from "./findings.ts";
import { batches, type Item, isRead, joined, list, many, type Source, UNREADABLE } from "./reading.ts";
import { wrongInCategory, wrongInGuard, wrongInMembership, wrongInPair, wrongInPet } from "./rules/pets.ts";
import { wrongInKey, wrongInSequence } from "./rules/records.ts";
import { petOf, wrongInEntry, wrongInOrder, wrongInOrdered, wrongInReservation } from "./rules/stock.ts";

export type AllInspected = Readonly<Record<ServiceName, Inspection>>;

export interface LookOptions {
  readonly clock: () => number;
  readonly progress?: OnProgress | undefined;
  /** How many findings of a kind are named. */
  readonly most?: number;
}

const schemas = {
  pet: [PETS, DELETION_GUARDS, KEYS, MARKS, FORMAT_MARKS],
  category: [CATEGORIES, KEYS, MARKS, FORMAT_MARKS],
  order: [ORDERS, KEYS, FORMAT_MARKS],
  inventory: [INVENTORY, HIGHEST_ORDER, FORMAT_MARKS],
} as const;
export const schemasOf = (service: ServiceName) => schemas[service];

/** What is found at two looks: of a petstore that runs, records that belong together are read a moment apart. */
export async function lookTwice(lookOnce: () => Promise<Finding[]>, pause: () => Promise<unknown>): Promise<Finding[]> {
  const first = await lookOnce();
  if (first.length === 0) return first;
  await pause();
  return seenTwice(first, await lookOnce());
}

/** What the parts of a look have in common. */
function begin(stores: AllInspected, found: Findings, progress: OnProgress) {
  const source = <T extends Doc>(service: ServiceName, kind: Kind<T>, name: string): Source<T> => ({
    ...{ service, kind, name },
    from: stores[service],
  });
  return {
    stores,
    found,
    source,
    pets: source("pet", PETS, "pet"),
    guards: source("pet", DELETION_GUARDS, "guard"),
    categories: source("category", CATEGORIES, "category"),
    orders: source("order", ORDERS, "order"),
    entries: source("inventory", INVENTORY, "inventory"),
    all: <T extends Doc>(of: Source<T>): AsyncGenerator<Item<T>> => list(of, found, progress),
    /** The highest ids that are in use. */
    highest: { pet: 0, category: 0, order: 0, inventory: 0 } satisfies Record<ServiceName, number>,
  };
}
type Look = ReturnType<typeof begin>;

/** Throws `CannotLook` for what is stored in a format that this version does not know. */
export async function look(stores: AllInspected, { clock, progress = () => {}, most }: LookOptions): Promise<Findings> {
  await requireFormats(stores);
  const found = createFindings(most);
  const looking = begin(stores, found, progress);
  await lookAtPets(looking);
  await lookAtOrders(looking);
  await lookAtCategories(looking);
  await lookAtKeys(looking, clock);
  // Behind the records: whatever has an id by now has it from the sequence.
  for (const service of WITH_KEYS) {
    const last = new Map(await stores[service].sequences()).get(service) ?? 0;
    found.add(wrongInSequence(service, last, looking.highest[service]));
  }
  await lookAtIndexes(looking);
  return found;
}

/** The mark that says in which format a collection is written. Undefined if there is none, or it can't be read. */
export async function markOf(from: Inspection, service: ServiceName, name: string): Promise<FormatMark | undefined> {
  const mark = (await many({ service, from, kind: FORMAT_MARKS, name: service }, [name])).get(name);
  return isRead(mark) ? mark : undefined;
}

async function requireFormats(stores: AllInspected): Promise<void> {
  const { version } = manifest;
  for (const service of serviceNames)
    for (const schema of schemas[service]) {
      if (!("formats" in schema)) continue;
      const { name, formats } = schema;
      const problem = problemOf(await markOf(stores[service], service, name), { service, name, version, formats });
      if (problem !== undefined) throw new CannotLook(problem);
    }
}

/** Services whose records are created under idempotency keys. */
const WITH_KEYS = ["pet", "category", "order"] as const;

/** Pets and inventory entries, which share their ids, with their categories and the orders that units are held for. */
async function lookAtPets({ found, pets, entries, categories, orders, all, highest }: Look): Promise<void> {
  for await (const batch of batches(joined(all(pets), all(entries)))) {
    for (const [id, pet, entry] of batch) {
      note(highest, "pet", id);
      if (isRead(pet)) found.add(wrongInPet(pet));
      if (isRead(entry)) {
        note(highest, "order", highestOrder(entry));
        found.add(wrongInEntry(entry));
      }
      if (pet !== UNREADABLE && entry !== UNREADABLE) found.add(wrongInPair(pet, entry));
    }
    const members = batch.flatMap(([, pet]) => (isRead(pet) ? pet : []));
    await each(members, categories, ({ categoryId }) => categoryId, wrongInMembership, found);
    const held = batch.values().flatMap(([, , entry]) => (isRead(entry) ? reservationsIn(entry) : []));
    // An entry may have a thousand.
    for await (const reservations of batches(held))
      await each(reservations, orders, ({ order }) => order, wrongInReservation, found);
  }
}

async function lookAtOrders({ found, orders, entries, all, highest }: Look): Promise<void> {
  for await (const batch of batches(all(orders))) {
    for (const { _id, doc } of batch) {
      note(highest, "order", _id);
      if (isRead(doc)) found.add(wrongInOrder(doc));
    }
    const docs = batch.flatMap(({ doc }) => (isRead(doc) ? doc : []));
    await each(docs, entries, petOf, wrongInOrdered, found);
  }
}

async function lookAtCategories({ found, guards, categories, all, highest }: Look): Promise<void> {
  for await (const [id, guard, category] of joined(all(guards), all(categories))) {
    note(highest, "category", id);
    if (isRead(category)) found.add(wrongInCategory(category));
    if (isRead(guard) && category !== UNREADABLE) found.add(wrongInGuard(guard, category));
  }
}

async function lookAtKeys(
  { found, source, pets, categories, orders, all, highest }: Look,
  clock: () => number,
): Promise<void> {
  const { isExpired } = createExpiry(RETENTION.keys, clock);
  for (const service of WITH_KEYS) {
    const records = { pet: pets, category: categories, order: orders }[service] as Source<Doc>;
    for await (const batch of batches(all(source(service, KEYS, `${service}-key`)))) {
      const valid = batch.flatMap(({ doc }) => (isRead(doc) && !isExpired(doc.hour) ? doc : []));
      for (const { recordId } of valid) note(highest, service, recordId);
      const rule = (key: KeyDoc, record: Doc | undefined) => wrongInKey(service, key, record);
      await each(valid, records, ({ recordId }) => recordId, rule, found);
    }
  }
}

/** Also reads what nothing else is compared with. */
async function lookAtIndexes({ stores, found, source, all }: Look): Promise<void> {
  for (const service of serviceNames)
    for (const kind of schemas[service]) {
      const detail = (await stores[service].wrongIndexes(kind)).join("; ");
      const index = { mend: byItself, of: service };
      if (detail !== "") found.add([finding("index-missing", [`${service}.${kind.name}`], `${detail}.`, index)]);
      if (kind.name === MARKS.name || kind.name === FORMAT_MARKS.name)
        for await (const _ of all(source(service, kind as unknown as Kind<Doc>, `${service}-mark`)));
    }
}

function note(highest: Record<ServiceName, number>, service: ServiceName, id: Id): void {
  if (typeof id === "number" && id > highest[service]) highest[service] = id;
}

/** Judges each of some documents beside another one, by its id. Without an id there is none. */
async function each<A, B extends Doc>(
  docs: readonly A[],
  source: Source<B>,
  idOf: (doc: A) => Id | undefined,
  rule: (doc: A, other: B | undefined) => readonly Finding[],
  found: Findings,
): Promise<void> {
  const others = await many(
    source,
    docs.map(idOf).filter((id) => id !== undefined),
  );
  for (const doc of docs) {
    const id = idOf(doc);
    const other = id === undefined ? undefined : others.get(id);
    if (other !== UNREADABLE) found.add(rule(doc, other));
  }
}
