/** Creates a service by its name. Only the one that is asked for is loaded. */
import type { Transport } from "@connectrpc/connect";
import type { ServiceName } from "../processes/names.ts";
import { openPeers, type PeersOf } from "./peers.ts";
import type { Deps } from "./records/deps.ts";
import type { ServiceModule } from "./records/module.ts";

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
