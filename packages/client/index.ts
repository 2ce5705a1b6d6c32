/** The petstore's client for programs: start with `createPetstore`. */

export { isPetstoreError, type PetstoreError, type Reason, type Violation } from "./errors.ts";
export type { Category, NewCategory } from "./gen/petstore/category/v1/category_pb.ts";
export { PetStatus } from "./gen/petstore/common/v1/pet_status_pb.ts";
export type { InventoryItem, InventoryUpdate } from "./gen/petstore/inventory/v1/inventory_pb.ts";
export type { Order } from "./gen/petstore/order/v1/order_pb.ts";
export type { NewPet, Pet } from "./gen/petstore/pet/v1/pet_pb.ts";
export type { Paged } from "./pages.ts";
export { createPetstore, type Petstore, type PetstoreOptions } from "./petstore.ts";
export type { Change, Snapshot, Watched } from "./watch.ts";
