/** The four services behind one address. */
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { withErrors } from "./errors.ts";
import type { Category } from "./gen/petstore/category/v1/category_pb.ts";
import { CategoryService, type ListCategoriesRequestSchema } from "./gen/petstore/category/v1/category_service_pb.ts";
import type { InventoryItem } from "./gen/petstore/inventory/v1/inventory_pb.ts";
import { InventoryService, type ListInventoryRequestSchema } from "./gen/petstore/inventory/v1/inventory_service_pb.ts";
import type { Order } from "./gen/petstore/order/v1/order_pb.ts";
import { type ListOrdersRequestSchema, OrderService } from "./gen/petstore/order/v1/order_service_pb.ts";
import type { Pet } from "./gen/petstore/pet/v1/pet_pb.ts";
import { type ListPetsRequestSchema, PetService } from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { type Paged, paged } from "./pages.ts";
import { withRetry } from "./retry.ts";

/** Milliseconds for a call and its repetitions, when the call says nothing else. */
const TIMEOUT_MS = 10_000;

export type PetstoreOptions = (
  | {
      /** Where the gateway is, such as "http://127.0.0.1:8080". */
      readonly baseUrl: string;
    }
  | {
      /** How to get there by other means, such as `createGrpcTransport` of @connectrpc/connect-node to a service. */
      readonly transport: Transport;
    }
) & {
  /** An API key or a token, or what gives one for each attempt; sent as `Authorization: Bearer`. */
  readonly credential?: string | (() => string | Promise<string>);
};

/** A list's request without what is found out while reading on. */
type Filter<S extends DescMessage> = Omit<MessageInitShape<S>, "pageToken" | "$typeName" | "$unknown">;

/** Every RPC of the contract by its name, and its list as one that is read with `for await`. */
export interface Petstore {
  readonly pets: Client<typeof PetService> & Paged<Filter<typeof ListPetsRequestSchema>, Pet>;
  readonly categories: Client<typeof CategoryService> & Paged<Filter<typeof ListCategoriesRequestSchema>, Category>;
  readonly orders: Client<typeof OrderService> & Paged<Filter<typeof ListOrdersRequestSchema>, Order>;
  readonly inventory: Client<typeof InventoryService> & Paged<Filter<typeof ListInventoryRequestSchema>, InventoryItem>;
}

/**
 * A client for all four services. Nothing is connected before the first call. Calls reject with a PetstoreError; `timeoutMs`
 * and `signal` of each call end it and its repetitions.
 */
export function createPetstore(options: PetstoreOptions): Petstore {
  const transport = createTransport(options);
  const pets = createClient(PetService, transport);
  const categories = createClient(CategoryService, transport);
  const orders = createClient(OrderService, transport);
  const inventory = createClient(InventoryService, transport);
  return {
    pets: { ...pets, ...paged(pets.listPets, (page) => page.pets) },
    categories: { ...categories, ...paged(categories.listCategories, (page) => page.categories) },
    orders: { ...orders, ...paged(orders.listOrders, (page) => page.orders) },
    inventory: { ...inventory, ...paged(inventory.listInventory, (page) => page.items) },
  };
}

function createTransport({ credential, ...where }: PetstoreOptions): Transport {
  const carrier = "transport" in where ? where.transport : createConnectTransport({ baseUrl: where.baseUrl });
  const known = credential === undefined ? carrier : withCredential(carrier, credential);
  return withTimeout(withErrors(withRetry(known, { clock: Date.now, random: Math.random, sleep })));
}

const withTimeout = (next: Transport): Transport => ({
  ...next,
  unary: (method, signal, timeoutMs = TIMEOUT_MS, ...rest) => next.unary(method, signal, timeoutMs, ...rest),
});

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

const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
