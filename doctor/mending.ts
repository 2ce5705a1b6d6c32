/** The stores as repairs change them: through the port, and by the wrappers of the services that own the records. */
import type { Collection, Store } from "@petstore/store/port";
import type { ServiceName } from "../processes/names.ts";
import { CATEGORIES, isTombstone as isDeletedCategory, nameOf as nameOfCategory } from "../services/category/model.ts";
import { INVENTORY, isTombstone as isRetired } from "../services/inventory/model.ts";
import { isTombstone as isEndedOrder, ORDERS } from "../services/order/model.ts";
import { DELETION_GUARDS, isTombstone as isEndedPet, nameOf, PETS } from "../services/pet/model.ts";
import { createExpiry, withExpiry } from "../services/records/expiry.ts";
import { withFoldedName } from "../services/records/folded-names.ts";
import { KEYS, type KeyDoc } from "../services/records/key-transitions.ts";
import { RETENTION } from "../services/records/retention.ts";

export type Stores = Readonly<Record<ServiceName, Store>>;
export type Mending = Awaited<ReturnType<typeof openMending>>;

export async function openMending(stores: Stores, clock: () => number) {
  const { pet, category, order, inventory } = stores;
  const expiry = createExpiry(RETENTION.tombstones, clock);
  const keys: Partial<Record<ServiceName, Collection<KeyDoc>>> = {
    pet: await pet.collection(KEYS),
    category: await category.collection(KEYS),
    order: await order.collection(KEYS),
  };
  const named = withFoldedName(await category.collection(CATEGORIES), nameOfCategory);
  return {
    stores,
    pets: withExpiry(withFoldedName(await pet.collection(PETS), nameOf), isEndedPet, expiry),
    guards: withExpiry(await pet.collection(DELETION_GUARDS), ({ closed }) => closed, expiry),
    categories: withExpiry(named, isDeletedCategory, expiry),
    orders: withExpiry(await order.collection(ORDERS), isEndedOrder, expiry),
    entries: withExpiry(await inventory.collection(INVENTORY), isRetired, expiry),
    keys,
  };
}
