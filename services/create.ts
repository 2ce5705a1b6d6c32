/** Who calls whom, and creating a service by its name. Only the one that is asked for is loaded. */
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { CategoryInternalService } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { InventoryInternalService } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { OrderInternalService } from "#proto/petstore/internal/v1/order_internal_service_pb.ts";
import { PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { ServiceName } from "../processes/names.ts";
import type { Deps, ServiceModule } from "./records/module.ts";

/** The internal services that each service calls, by the names that its own code gives them. */
export const peers = {
  pet: { inventory: InventoryInternalService, categories: CategoryInternalService },
  category: { pets: PetInternalService },
  order: { inventory: InventoryInternalService },
  inventory: { pets: PetInternalService, orders: OrderInternalService },
} as const satisfies Record<ServiceName, Readonly<Record<string, DescService>>>;

/** Clients of the services that a service calls. */
export type PeersOf<N extends ServiceName> = {
  readonly [K in keyof (typeof peers)[N]]: (typeof peers)[N][K] extends DescService
    ? Client<(typeof peers)[N][K]>
    : never;
};

const servedBy = new Map<DescService, ServiceName>([
  [PetInternalService, "pet"],
  [CategoryInternalService, "category"],
  [OrderInternalService, "order"],
  [InventoryInternalService, "inventory"],
]);

/** Opens the clients of the services that `name` calls. */
export function openPeers<N extends ServiceName>(name: N, transportTo: (peer: ServiceName) => Transport): PeersOf<N> {
  const clients = Object.entries<DescService>(peers[name]).map(([as, desc]) => [
    as,
    createClient(desc, transportTo(servedBy.get(desc) as ServiceName)),
  ]);
  return Object.fromEntries(clients) as PeersOf<N>;
}

type Create<N extends ServiceName> = (deps: Deps, peers: PeersOf<N>) => Promise<ServiceModule>;

const load: { readonly [N in ServiceName]: () => Promise<Create<N>> } = {
  pet: async () => (await import("./pet/service.ts")).createPetService,
  category: async () => (await import("./category/service.ts")).createCategoryService,
  order: async () => (await import("./order/service.ts")).createOrderService,
  inventory: async () => (await import("./inventory/service.ts")).createInventoryService,
};

export async function createService<N extends ServiceName>(
  name: N,
  deps: Deps,
  transportTo: (peer: ServiceName) => Transport,
): Promise<ServiceModule> {
  const create: Create<N> = await load[name]();
  return create(deps, openPeers(name, transportTo));
}
