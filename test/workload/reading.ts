/** Reads records in every possible way. */
import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Category } from "#proto/petstore/category/v1/category_pb.ts";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import type { InventoryItem } from "#proto/petstore/inventory/v1/inventory_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import type { Order } from "#proto/petstore/order/v1/order_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import type { Pet } from "#proto/petstore/pet/v1/pet_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { fromPetStatus } from "../../services/records/record.ts";
import { type Kind, kindOf, type Operation } from "./operations.ts";
import { notFound, type Outcome, type Shown } from "./perform.ts";

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

export const present = <T>(record: T | undefined): T => {
  if (record === undefined) throw new Error("The answer holds no record.");
  return record;
};

/** An endpoint by which services are called. */
export interface Endpoint {
  client<S extends DescService>(desc: S): Client<S>;
}

async function see(
  endpoint: Endpoint,
  kind: Kind,
  id: number,
  how: "alone" | "batch" | "listed",
): Promise<Shown | undefined> {
  if (how === "listed") return (await list(endpoint, kind, [id]))[0];
  const one = BigInt(id);
  switch (kind) {
    case "category": {
      const service = endpoint.client(CategoryService);
      if (how === "alone") return shownCategory(present((await service.getCategory({ categoryId: one })).category));
      return (await service.batchGetCategories({ categoryId: [one] })).categories.map(shownCategory)[0];
    }
    case "pet": {
      const service = endpoint.client(PetService);
      if (how === "alone") return shownPet(present((await service.getPet({ petId: one })).pet));
      return (await service.batchGetPets({ petId: [one] })).pets.map(shownPet)[0];
    }
    case "order": {
      const service = endpoint.client(OrderService);
      if (how === "alone") return shownOrder(present((await service.getOrder({ orderId: one })).order));
      return (await service.batchGetOrders({ orderId: [one] })).orders.map(shownOrder)[0];
    }
    case "inventory": {
      const service = endpoint.client(InventoryService);
      if (how === "alone") return shownItem(present((await service.getInventory({ petId: one })).item));
      return (await service.batchGetInventory({ petId: [one] })).items.map(shownItem)[0];
    }
  }
}

async function list(endpoint: Endpoint, kind: Kind, ids: readonly number[] = []): Promise<Shown[]> {
  const id = ids.map(BigInt);
  switch (kind) {
    case "category":
      return (await endpoint.client(CategoryService).listCategories({ id })).categories.map(shownCategory);
    case "pet":
      return (await endpoint.client(PetService).listPets({ id })).pets.map(shownPet);
    case "order":
      return (await endpoint.client(OrderService).listOrders({ id })).orders.map(shownOrder);
    case "inventory":
      return (await endpoint.client(InventoryService).listInventory({ petId: id })).items.map(shownItem);
  }
}

/** A record that a batch or a list leaves out counts as not found. */
export async function read(endpoint: Endpoint, operation: Operation): Promise<Outcome> {
  const kind = kindOf(operation);
  if (!("how" in operation)) return { is: "done", found: (await list(endpoint, kind)).map(({ id }) => id) };
  const shown = await see(endpoint, kind, operation.id, operation.how);
  return shown ? { is: "done", shown, found: [shown.id] } : { is: "refused", reason: notFound(kind) };
}

/** Everything that lists show. */
export async function listAll(endpoint: Endpoint): Promise<Shown[]> {
  const all = [];
  for (const kind of ["category", "pet", "order", "inventory"] as const) all.push(...(await list(endpoint, kind)));
  return all;
}
