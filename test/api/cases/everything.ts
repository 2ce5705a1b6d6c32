import { toJson } from "@bufbuild/protobuf";
import { ListCategoriesResponseSchema } from "#proto/petstore/category/v1/category_service_pb.ts";
import { ListInventoryResponseSchema } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { ListOrdersResponseSchema } from "#proto/petstore/order/v1/order_service_pb.ts";
import { ListPetsResponseSchema } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { Shop } from "./shop.ts";

/** More records than any case makes. */
const NEWEST = { limit: 10 };

/**
 * The newest records of each kind, which a call without effect must not change. The status of a pet is left out, because it
 * may still change after an earlier write; the inventory entry that it follows is included.
 */
export async function everything({ pets, categories, orders, inventory }: Shop): Promise<object> {
  const [p, c, o, i] = await Promise.all([
    pets.listPets(NEWEST),
    categories.listCategories(NEWEST),
    orders.listOrders(NEWEST),
    inventory.listInventory(NEWEST),
  ]);
  for (const pet of p.pets) {
    pet.etag = "";
    delete pet.status;
  }
  return {
    pets: toJson(ListPetsResponseSchema, p),
    categories: toJson(ListCategoriesResponseSchema, c),
    orders: toJson(ListOrdersResponseSchema, o),
    inventory: toJson(ListInventoryResponseSchema, i),
  };
}
