/** One look at all that is stored: each record by itself, then beside those that it belongs to. */
import type { Inspection, Kind } from "@petstore/store/inspection";
import type { Doc } from "@petstore/store/port";
import type { ServiceName } from "../processes/names.ts";
import { CATEGORIES } from "../services/category/model.ts";
import { MARKS as HIGHEST_ORDER } from "../services/inventory/highest-order.ts";
import { INVENTORY } from "../services/inventory/model.ts";
import { highestOrder, reservationsIn } from "../services/inventory/rules.ts";
import { ORDERS } from "../services/order/model.ts";
import { DELETION_GUARDS, PETS } from "../services/pet/model.ts";
import { createExpiry } from "../services/records/expiry.ts";
import { MARKS } from "../services/records/folded-names.ts";
import { KEYS } from "../services/records/key-transitions.ts";
import { RETENTION } from "../services/records/retention.ts";
import { byOpening, createFindings, type Findings, finding } from "./findings.ts";
import {
  batches,
  chunks,
  type Item,
  isRead,
  joined,
  list,
  many,
  type OnProgress,
  type Read,
  type Source,
} from "./reading.ts";
import { wrongInCategory, wrongInGuard } from "./rules/categories.ts";
import { wrongInEntry, wrongInReservation } from "./rules/entries.ts";
import { wrongInKey, wrongInSequence } from "./rules/keys.ts";
import { petOf, wrongInOrder, wrongInOrdered } from "./rules/orders.ts";
import { wrongInMembership, wrongInPair, wrongInPet } from "./rules/pets.ts";

export type Inspected = Omit<Inspection, "close">;
export type AllInspected = Readonly<Record<ServiceName, Inspected>>;

export interface LookOptions {
  readonly clock: () => number;
  /** Whether the petstore runs, and may be about to finish what looks unfinished. */
  readonly isLive: boolean;
  readonly progress?: OnProgress | undefined;
  /** How many findings of a kind are named. */
  readonly most?: number;
}

const schemas = {
  pet: [PETS, DELETION_GUARDS, KEYS, MARKS],
  category: [CATEGORIES, KEYS, MARKS],
  order: [ORDERS, KEYS],
  inventory: [INVENTORY, HIGHEST_ORDER],
} as const;
export const serviceNames = Object.keys(schemas) as ServiceName[];
export const schemasOf = (service: ServiceName) => schemas[service];

export async function look(
  stores: AllInspected,
  { clock, isLive, progress = () => {}, most }: LookOptions,
): Promise<Findings> {
  const found = createFindings(most);
  const source = <T extends Doc>(service: ServiceName, kind: Kind<T>, name: string): Source<T> => ({
    service,
    from: stores[service],
    kind,
    name,
  });
  const pets = source("pet", PETS, "pet");
  const guards = source("pet", DELETION_GUARDS, "guard");
  const categories = source("category", CATEGORIES, "category");
  const orders = source("order", ORDERS, "order");
  const entries = source("inventory", INVENTORY, "inventory");
  const all = <T extends Doc>(source: Source<T>): AsyncGenerator<Item<T>> => list(source, found, progress);
  const highest = { pet: 0, category: 0, order: 0, inventory: 0 };
  const note = (service: ServiceName, id: unknown) => {
    if (typeof id === "number" && id > highest[service]) highest[service] = id;
  };
  const judge = <T>(doc: Read<T> | undefined, rule: (doc: T) => ReturnType<typeof wrongInPet>) => {
    if (isRead(doc)) found.add(rule(doc));
  };

  for await (const batch of batches(joined(all(pets), all(entries)))) {
    const members = batch.flatMap(([, pet]) => (isRead(pet) ? pet : []));
    const categoryOf = await many(
      categories,
      members.map(({ categoryId }) => categoryId),
    );
    for (const [id, pet, entry] of batch) {
      note("pet", id);
      judge(pet, wrongInPet);
      judge(entry, wrongInEntry);
      if (isRead(entry)) note("order", highestOrder(entry));
      if (pet !== "unreadable" && entry !== "unreadable") found.add(wrongInPair(pet, entry));
    }
    for (const pet of members) {
      const category = categoryOf.get(pet.categoryId);
      if (category !== "unreadable") found.add(wrongInMembership(pet, category));
    }
    // An entry may have a thousand.
    for (const reservations of chunks(
      batch.values().flatMap(([, , entry]) => (isRead(entry) ? reservationsIn(entry) : [])),
    )) {
      const orderOf = await many(
        orders,
        reservations.map(({ order }) => order),
      );
      for (const reservation of reservations) {
        const order = orderOf.get(reservation.order);
        if (order !== "unreadable") found.add(wrongInReservation(reservation, order));
      }
    }
  }
  for await (const batch of batches(all(orders))) {
    const docs = batch.flatMap(({ _id, doc }) => {
      note("order", _id);
      return isRead(doc) ? doc : [];
    });
    const entryOf = await many(
      entries,
      docs.flatMap((doc) => petOf(doc) ?? []),
    );
    for (const doc of docs) {
      found.add(wrongInOrder(doc));
      const entry = entryOf.get(petOf(doc) ?? 0);
      if (entry !== "unreadable") found.add(wrongInOrdered(doc, entry));
    }
  }
  for await (const [id, guard, category] of joined(all(guards), all(categories))) {
    note("category", id);
    judge(category, wrongInCategory);
    if (category !== "unreadable") judge(guard, (doc) => wrongInGuard(doc, category));
  }
  const { isExpired } = createExpiry(RETENTION.keys, clock);
  for (const service of ["pet", "category", "order"] as const) {
    const keys = source(service, KEYS, `${service}-key`);
    const records = { pet: pets, category: categories, order: orders }[service] as Source<Doc>;
    for await (const batch of batches(all(keys))) {
      const valid = batch.flatMap(({ doc }) => (isRead(doc) && !isExpired(doc.hour) ? doc : []));
      const recordOf = await many(
        records,
        valid.map(({ recordId }) => recordId),
      );
      for (const key of valid) {
        note(service, key.recordId);
        const record = recordOf.get(key.recordId);
        if (record !== "unreadable") found.add(wrongInKey(service, key, record, isLive));
      }
    }
    // Behind the records: whatever has an id by now has it from the sequence.
    found.add(wrongInSequence(service, await stores[service].last(service), highest[service]));
  }
  for (const service of serviceNames)
    for (const kind of schemas[service]) {
      const detail = (await stores[service].wrongIndexes(kind)).join("; ");
      const index = { mend: byOpening, of: service };
      if (detail !== "") found.add([finding("index-missing", [`${service}.${kind.name}`], `${detail}.`, index)]);
    }
  for (const service of ["pet", "category", "inventory"] as const)
    for await (const _ of all<Doc>(
      source(service, service === "inventory" ? HIGHEST_ORDER : MARKS, `${service}-mark`),
    ));
  return found;
}
