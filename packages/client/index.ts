/** The petstore's client for programs: start with `createPetstore`. */

export type { CallOptions, Logger } from "./calls.ts";
export { type ErrorCode, PetstoreError, type Violation } from "./errors.ts";
export type { RecordType, StoreFilter } from "./events.ts";
export { createPetstore, type Petstore, type PetstoreOptions } from "./petstore.ts";
export type {
  Category,
  InventoryItem,
  NewCategory,
  NewOrder,
  NewPet,
  NewStock,
  Order,
  Pet,
  PetStatus,
} from "./records.ts";
export type { Condition, Creatable, CreateOptions, List, Page, Resource } from "./resource.ts";
export type { Change, Present, SnapshotMark, WatchOptions } from "./watch.ts";
