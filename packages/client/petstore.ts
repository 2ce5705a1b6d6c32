/** The client of a petstore: four kinds of records behind one address. */
import type { Message } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { type CommonOptions, createCalls, type Deps } from "./calls.ts";
import { type WatchStore, watchStore } from "./events.ts";
import * as category from "./gen/petstore/category/v1/category_service_pb.ts";
import * as inventory from "./gen/petstore/inventory/v1/inventory_service_pb.ts";
import * as order from "./gen/petstore/order/v1/order_service_pb.ts";
import * as pet from "./gen/petstore/pet/v1/pet_service_pb.ts";
import type {
  Category,
  Changes,
  Given,
  InventoryItem,
  NewCategory,
  NewOrder,
  NewPet,
  NewStock,
  Order,
  Pet,
} from "./records.ts";
import { type Creatable, type Resource, resource } from "./resource.ts";
import { createTransport, type GatewayOptions } from "./transport.ts";

export interface TransportOptions {
  /** Another way to the services, such as `createGrpcTransport` of @connectrpc/connect-node to one of them. */
  readonly transport: Transport;
  readonly baseUrl?: never;
  readonly fetch?: never;
}

export type PetstoreOptions = (GatewayOptions | TransportOptions) & CommonOptions;

/** By the requests of a service. `update` can remove the members that `Removable` names. */
type Records<T, New, List extends Message, Watch extends Message, Removable extends keyof New = never> = Resource<
  T,
  New,
  Changes<New, Removable>,
  Given<List>,
  Given<Watch, "snapshot" & keyof Watch>
>;

export interface Petstore {
  readonly pets: Records<Pet, NewPet, pet.ListPetsRequest, pet.WatchPetsRequest> & Creatable<Pet, NewPet>;
  readonly categories: Creatable<Category, NewCategory> &
    Records<Category, NewCategory, category.ListCategoriesRequest, category.WatchCategoriesRequest, "description">;
  readonly orders: Creatable<Order, NewOrder> &
    Records<Order, NewOrder, order.ListOrdersRequest, order.WatchOrdersRequest, "shipDate">;
  /** By the ids of pets. An entry comes and goes with its pet. */
  readonly inventory: Records<InventoryItem, NewStock, inventory.ListInventoryRequest, inventory.WatchInventoryRequest>;
  /** What happens to all kinds of records, by one connection to the gateway (`GET /events`). */
  readonly watch: WatchStore;
}

/** A client for all four services. It connects with the first call. Whatever fails, fails with a PetstoreError. */
export const createPetstore = (options: PetstoreOptions): Petstore =>
  petstoreWith(options, { clock: Date.now, random: Math.random, sleep });

/** `createPetstore` for tests, which bring their own clock. */
export function petstoreWith(options: PetstoreOptions, deps: Deps): Petstore {
  const calls = createCalls(options.transport ?? createTransport(options), options, deps);
  const records = {
    pets: resource(pet.PetService, "Pet", "Pets", calls),
    categories: resource(category.CategoryService, "Category", "Categories", calls),
    orders: resource(order.OrderService, "Order", "Orders", calls),
    inventory: resource(inventory.InventoryService, "Inventory", "Inventory", calls),
  };
  return { ...(records as Omit<Petstore, "watch">), watch: watchStore(options, calls) };
}

/** The longest delay that `setTimeout` takes: for a longer one Node fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Resolves after so many milliseconds, or when the signal aborts. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(ms, LONGEST_TIMER_MS));
    if (signal?.aborted) done();
    else signal?.addEventListener("abort", done);
  });
