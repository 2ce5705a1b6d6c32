/** Which services the gateway offers, and at which endpoint. */
import type { DescService } from "@bufbuild/protobuf";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { ServiceName } from "../processes/names.ts";

/** The services that outside callers may reach at both endpoints, with the process that serves each. */
export const publicServices: readonly { readonly name: ServiceName; readonly desc: DescService }[] = [
  { name: "pet", desc: PetService },
  { name: "category", desc: CategoryService },
  { name: "order", desc: OrderService },
  { name: "inventory", desc: InventoryService },
];

/** The services of the HTTP API: the public ones, and the gateway's own EventService. */
export const httpServices: readonly DescService[] = [...publicServices.map(({ desc }) => desc), EventService];
