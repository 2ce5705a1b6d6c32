import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "../../../proto/gen/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { priorities, priorityOf } from "./priority.ts";

const namesOf = (...services: DescService[]) =>
  Object.fromEntries(
    priorities.map((priority) => [
      priority,
      services.flatMap(({ methods }) => methods.filter((one) => priorityOf(one) === priority).map(({ name }) => name)),
    ]),
  );

test("the contract says what goes first", () => {
  expect(namesOf(OrderService, PetService, CategoryService, InventoryService)).toEqual({
    finish: [
      ...["UpdateOrder", "DeleteOrder", "UpdatePet", "DeletePet"],
      ...["UpdateCategory", "DeleteCategory", "UpdateInventory"],
    ],
    create: ["CreateOrder", "CreatePet", "CreateCategory"],
    read: [
      ...["GetOrder", "BatchGetOrders", "GetPet", "BatchGetPets"],
      ...["GetCategory", "BatchGetCategories", "GetInventory", "BatchGetInventory"],
    ],
    list: [
      ...["ListOrders", "WatchOrders", "ListPets", "WatchPets"],
      ...["ListCategories", "WatchCategories", "ListInventory", "WatchInventory"],
    ],
  });
});
