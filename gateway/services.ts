import type { DescService } from "@bufbuild/protobuf";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { ServiceName } from "../config.ts";

/** What callers from outside may reach, at either endpoint, by the process that serves it. */
export const publicServices: readonly { readonly name: ServiceName; readonly desc: DescService }[] = [
  { name: "pet", desc: PetService },
  { name: "category", desc: CategoryService },
  { name: "order", desc: OrderService },
  { name: "inventory", desc: InventoryService },
];

/** What the HTTP API has: these, and what the gateway makes of them. */
export const httpServices: readonly DescService[] = [...publicServices.map(({ desc }) => desc), EventService];
