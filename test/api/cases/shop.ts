/** Creates what cases need, over gRPC. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Category, NewCategorySchema } from "#proto/petstore/category/v1/category_pb.ts";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import type { InventoryItem } from "#proto/petstore/inventory/v1/inventory_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import type { Order, OrderSchema } from "#proto/petstore/order/v1/order_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import type { NewPetSchema, Pet } from "#proto/petstore/pet/v1/pet_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { Petstore } from "../../harness/petstore.ts";

export interface Shop {
  readonly pets: Client<typeof PetService>;
  readonly categories: Client<typeof CategoryService>;
  readonly orders: Client<typeof OrderService>;
  readonly inventory: Client<typeof InventoryService>;
  category(init?: MessageInitShape<typeof NewCategorySchema>, requestId?: string): Promise<Category>;
  /** In a new category, unless `init` names one. */
  pet(init?: MessageInitShape<typeof NewPetSchema>, requestId?: string): Promise<Pet>;
  order(init?: MessageInitShape<typeof OrderSchema>, requestId?: string): Promise<Order>;
  /** A pet with this many units in stock. */
  stocked(quantity: number): Promise<Pet>;
  stockOf(petId: bigint): Promise<InventoryItem>;
  /** A number that no other case uses. */
  unique(): string;
}

let made = 0;

export function openShop({ client }: Pick<Petstore, "client">): Shop {
  const pets = client(PetService);
  const categories = client(CategoryService);
  const orders = client(OrderService);
  const inventory = client(InventoryService);
  const shop: Shop = {
    pets,
    categories,
    orders,
    inventory,
    unique: () => `${process.pid}-${++made}`,
    async category(init = { name: "dog" }, requestId) {
      return given((await categories.createCategory({ category: init, requestId })).category);
    },
    async pet(init = {}, requestId) {
      const categoryId = init.categoryId ?? (await shop.category()).id;
      return given((await pets.createPet({ pet: { name: "Rex", ...init, categoryId }, requestId })).pet);
    },
    async order(init = {}, requestId) {
      return given((await orders.createOrder({ order: init, requestId })).order);
    },
    async stocked(quantity) {
      const pet = await shop.pet();
      await inventory.updateInventory({ petId: pet.id, inventory: { quantity } });
      return pet;
    },
    stockOf: async (petId) => given((await inventory.getInventory({ petId })).item),
  };
  return shop;
}

function given<T>(record: T | undefined): T {
  if (record === undefined) throw new Error("the answer holds no record");
  return record;
}
