/** One client for the four services behind one address. */
import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { withErrors } from "./errors.ts";
import type { Category } from "./gen/petstore/category/v1/category_pb.ts";
import { CategoryService } from "./gen/petstore/category/v1/category_service_pb.ts";
import type { InventoryItem } from "./gen/petstore/inventory/v1/inventory_pb.ts";
import { InventoryService } from "./gen/petstore/inventory/v1/inventory_service_pb.ts";
import type { Order } from "./gen/petstore/order/v1/order_pb.ts";
import { OrderService } from "./gen/petstore/order/v1/order_service_pb.ts";
import type { Pet } from "./gen/petstore/pet/v1/pet_pb.ts";
import { PetService } from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { type Paged, paged } from "./pages.ts";
import { type RetryDeps, withRetry } from "./retry.ts";
import { type Watched, watched } from "./watch.ts";

/** Default time limit of a unary call with its retries, in milliseconds. */
const TIMEOUT_MS = 10_000;

export type PetstoreOptions = (
  | {
      /** Where the gateway is, such as "http://127.0.0.1:8080". */
      readonly baseUrl: string;
    }
  | {
      /** Another way to the services, such as `createGrpcTransport` of @connectrpc/connect-node to one of them. */
      readonly transport: Transport;
    }
) & {
  /** An API key or a token, or a function that returns one for each attempt; sent as `Authorization: Bearer`. */
  readonly credential?: string | (() => string | Promise<string>);
};

/** The request of a method without the page token, which the client fills in. */
type Filter<S extends DescService, M extends keyof S["method"]> = Omit<
  MessageInitShape<S["method"][M]["input"]>,
  "pageToken" | "$typeName" | "$unknown"
>;

/** All RPCs of a service by name; its list and its changes are read with `for await`. */
type Resource<T, S extends DescService, L extends keyof S["method"], W extends keyof S["method"]> = Client<S> &
  Paged<Filter<S, L>, T> &
  Watched<Filter<S, W>, T>;

export interface Petstore {
  readonly pets: Resource<Pet, typeof PetService, "listPets", "watchPets">;
  readonly categories: Resource<Category, typeof CategoryService, "listCategories", "watchCategories">;
  readonly orders: Resource<Order, typeof OrderService, "listOrders", "watchOrders">;
  readonly inventory: Resource<InventoryItem, typeof InventoryService, "listInventory", "watchInventory">;
}

/**
 * A client for all four services. It connects with the first call. Calls reject with a PetstoreError; the `timeoutMs` and
 * `signal` of a call apply to all its attempts together.
 */
export const createPetstore = (options: PetstoreOptions): Petstore =>
  petstoreWith(options, { clock: Date.now, random: Math.random, sleep });

/** `createPetstore` for tests, which bring their own clock. */
export function petstoreWith(options: PetstoreOptions, deps: RetryDeps): Petstore {
  const transport = createTransport(options, deps);
  const pets = createClient(PetService, transport);
  const categories = createClient(CategoryService, transport);
  const orders = createClient(OrderService, transport);
  const inventory = createClient(InventoryService, transport);
  return {
    pets: {
      ...pets,
      ...paged(pets.listPets, (page) => page.pets),
      ...watched(pets.watchPets, (event) => event.pet, deps),
    },
    categories: {
      ...categories,
      ...paged(categories.listCategories, (page) => page.categories),
      ...watched(categories.watchCategories, (event) => event.category, deps),
    },
    orders: {
      ...orders,
      ...paged(orders.listOrders, (page) => page.orders),
      ...watched(orders.watchOrders, (event) => event.order, deps),
    },
    inventory: {
      ...inventory,
      ...paged(inventory.listInventory, (page) => page.items),
      ...watched(inventory.watchInventory, (event) => event.item, deps),
    },
  };
}

function createTransport({ credential, ...where }: PetstoreOptions, deps: RetryDeps): Transport {
  // In JSON an enum value would come by a name, and one that only a later version knows would be lost.
  const byAddress = (baseUrl: string) => createConnectTransport({ baseUrl, useBinaryFormat: true });
  const carrier = "transport" in where ? where.transport : byAddress(where.baseUrl);
  const known = credential === undefined ? carrier : withCredential(carrier, credential);
  return withTimeout(withErrors(withRetry(known, deps)));
}

const withTimeout = (next: Transport): Transport => ({
  unary: (method, signal, ms = TIMEOUT_MS, ...rest) => next.unary(method, signal, sayable(ms), ...rest),
  stream: (method, signal, ms = 0, ...rest) => next.stream(method, signal, sayable(ms), ...rest),
});

/**
 * A timeout that every protocol can send: gRPC takes eight digits at most, and none takes fractions. As in Connect, 0 and less
 * means no limit.
 */
const sayable = (ms: number): number | undefined => (ms > 0 ? Math.min(Math.ceil(ms), 99_999_999) : undefined);

function withCredential(next: Transport, credential: NonNullable<PetstoreOptions["credential"]>): Transport {
  const withIt = async (init: HeadersInit | undefined) => {
    const headers = new Headers(init);
    headers.set("Authorization", `Bearer ${typeof credential === "string" ? credential : await credential()}`);
    return headers;
  };
  return {
    unary: async (method, signal, timeoutMs, header, ...rest) =>
      next.unary(method, signal, timeoutMs, await withIt(header), ...rest),
    stream: async (method, signal, timeoutMs, header, ...rest) =>
      next.stream(method, signal, timeoutMs, await withIt(header), ...rest),
  };
}

/** The longest delay that `setTimeout` takes: for a longer one Node fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(ms, LONGEST_TIMER_MS));
    signal?.addEventListener("abort", done);
  });
