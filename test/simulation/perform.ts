/** Carrying out an operation as a client does, and reading what it is told. */
import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { Category } from "#proto/petstore/category/v1/category_pb.ts";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import type { InventoryItem } from "#proto/petstore/inventory/v1/inventory_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import type { Order } from "#proto/petstore/order/v1/order_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import type { Pet } from "#proto/petstore/pet/v1/pet_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { fromPetStatus, toPetStatus } from "#shared/record.ts";
import { reasonOf } from "#shared/rpc/fault.ts";
import type { Kind, Operation } from "./operations.ts";

/** A record as an answer shows it, in one shape for all kinds. */
export interface Shown {
  readonly kind: Kind;
  readonly id: number;
  readonly version: number;
  readonly view: Readonly<Record<string, string | number | boolean | undefined>>;
}

/** How an operation ended, as its caller sees it. */
export type Outcome =
  | { readonly is: "done"; readonly shown?: Shown | undefined }
  | { readonly is: "refused"; readonly reason: string }
  | { readonly is: "unknown" };

export const nameOf = (mark: number) => `mark ${mark}`;

const versionOf = (etag: string) => Number(etag.replaceAll('"', ""));

export const shownCategory = (category: Category): Shown => ({
  kind: "category",
  id: Number(category.id),
  version: versionOf(category.etag),
  view: { name: category.name },
});
export const shownPet = ({ id, etag, name, categoryId, status }: Pet): Shown => ({
  kind: "pet",
  id: Number(id),
  version: versionOf(etag),
  view: { name, category: Number(categoryId), status: status && fromPetStatus(status) },
});
export const shownOrder = ({ id, etag, petId, quantity, shipDate, complete }: Order): Shown => ({
  kind: "order",
  id: Number(id),
  version: versionOf(etag),
  view: {
    pet: petId === undefined ? undefined : Number(petId),
    quantity,
    complete,
    date: shipDate && Number(shipDate.seconds),
  },
});
export const shownItem = ({ petId, etag, quantity, status }: InventoryItem): Shown => ({
  kind: "inventory",
  id: Number(petId),
  version: versionOf(etag),
  view: { quantity, status: fromPetStatus(status) },
});

const present = <T>(record: T | undefined): T => {
  if (record === undefined) throw new Error("The answer holds no record.");
  return record;
};

/** A door by which services are called. */
export interface Door {
  client<S extends DescService>(desc: S): Client<S>;
}

async function send(door: Door, operation: Operation): Promise<Shown | undefined> {
  const categories = door.client(CategoryService);
  const pets = door.client(PetService);
  const orders = door.client(OrderService);
  const inventory = door.client(InventoryService);
  const { mark } = operation;
  const name = nameOf(mark);
  const shipDate = { seconds: BigInt(mark), nanos: 0 };
  const key = operation.key === undefined ? {} : { requestId: operation.key };
  const etag = operation.match === undefined ? {} : { etag: `"${operation.match}"` };
  const id = "id" in operation ? BigInt(operation.id) : 0n;
  switch (operation.do) {
    case "create category":
      return shownCategory(present((await categories.createCategory({ category: { name }, ...key })).category));
    case "rename category":
      return shownCategory(
        present((await categories.updateCategory({ categoryId: id, category: { name }, ...etag })).category),
      );
    case "delete category":
      await categories.deleteCategory({ categoryId: id, ...etag });
      return undefined;
    case "create pet":
    case "change pet": {
      const { category, status } = operation;
      const pet = {
        name,
        ...(category !== undefined && { categoryId: BigInt(category) }),
        ...(status && { status: toPetStatus(status) }),
      };
      if (operation.do === "create pet") return shownPet(present((await pets.createPet({ pet, ...key })).pet));
      const paths = ["name", ...(category === undefined ? [] : ["category_id"]), ...(status ? ["status"] : [])];
      return shownPet(present((await pets.updatePet({ petId: id, pet, updateMask: { paths }, ...etag })).pet));
    }
    case "delete pet":
      await pets.deletePet({ petId: id, ...etag });
      return undefined;
    case "place order": {
      const { quantity, complete, pet } = operation;
      const order = {
        quantity,
        shipDate,
        ...(complete !== undefined && { complete }),
        ...(pet !== undefined && { petId: BigInt(pet) }),
      };
      return shownOrder(present((await orders.createOrder({ order, ...key })).order));
    }
    case "date order":
    case "complete order": {
      const updateMask = { paths: [operation.do === "date order" ? "ship_date" : "complete"] };
      const order = { shipDate, complete: true };
      return shownOrder(present((await orders.updateOrder({ orderId: id, order, updateMask, ...etag })).order));
    }
    case "cancel order":
      await orders.deleteOrder({ orderId: id, ...etag });
      return undefined;
    case "stock": {
      const update = { petId: id, inventory: { quantity: operation.quantity }, ...etag };
      return shownItem(present((await inventory.updateInventory(update)).item));
    }
  }
}

/** Sends an operation once. 503 and 504 say that nobody knows how it ended; every other error that it had no effect. */
export async function perform(door: Door, operation: Operation): Promise<Outcome> {
  try {
    return { is: "done", shown: await send(door, operation) };
  } catch (thrown) {
    if (!(thrown instanceof ConnectError)) throw thrown;
    if (thrown.code === Code.Unavailable || thrown.code === Code.DeadlineExceeded) return { is: "unknown" };
    return { is: "refused", reason: reasonOf(thrown)?.reason ?? `no reason: ${thrown.message}` };
  }
}

/** Everything that lists show. */
export async function listAll(door: Door): Promise<Shown[]> {
  const { categories } = await door.client(CategoryService).listCategories({});
  const { pets } = await door.client(PetService).listPets({});
  const { orders } = await door.client(OrderService).listOrders({});
  const { items } = await door.client(InventoryService).listInventory({});
  return [...categories.map(shownCategory), ...pets.map(shownPet), ...orders.map(shownOrder), ...items.map(shownItem)];
}
