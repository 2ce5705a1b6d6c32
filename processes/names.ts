/** Which processes there are, their names, and where they are reached. */
import { origin } from "@petstore/rpc/http/address";
import { optional, urls, type Values } from "@petstore/runtime/environment";
import type { processSettings } from "./config.ts";

/** In the order of their ports: the index is added to PORT_BASE. */
export const processNames = ["gateway", "pet", "category", "order", "inventory"] as const;
export type ProcessName = (typeof processNames)[number];
export type ServiceName = Exclude<ProcessName, "gateway">;

export const isServiceName = (name: string | undefined): name is ServiceName =>
  name !== "gateway" && processNames.some((known) => known === name);

/** The services, each of which has a store. */
export const serviceNames: readonly ServiceName[] = processNames.filter(isServiceName);

/** How many processes there are of each kind; 1 for a kind that is missing. */
export type Replicas = ReadonlyMap<ProcessName, number>;
export const replicasOf = (replicas: Replicas, name: ProcessName): number => replicas.get(name) ?? 1;

/** The name of one of `count` processes of a kind: "pet", or "pet-2" where there are several. */
export const instanceOf = (name: ProcessName, replica: number, count: number): string =>
  count === 1 ? name : `${name}-${replica}`;

/**
 * The port of a process. The first processes of all kinds are side by side, above them the second ones, and so on. All
 * gateways share one port, so that external callers know a single address; the system gives each connection to one of
 * them. Services are called over few connections that stay open, so each has a port of its own, and its callers
 * distribute their calls.
 */
export const portOf = (name: ProcessName, portBase: number, replica = 1): number =>
  portBase + placeOf(name, name === "gateway" ? 1 : replica);

const placeOf = (name: ProcessName, replica: number): number =>
  processNames.indexOf(name) + (replica - 1) * processNames.length;

/** How far above the port of a process its admin port is: 100, or more where the ports of all processes need more room. */
export function adminDistance(replicas: Replicas): number {
  const most = Math.max(...processNames.map((name) => replicasOf(replicas, name)));
  return 100 * Math.ceil((most * processNames.length) / 100);
}

/** The admin port of a process. Gateways, which share their port, have one each. */
export const adminPortOf = (name: ProcessName, portBase: number, replica: number, replicas: Replicas): number =>
  portBase + placeOf(name, replica) + adminDistance(replicas);

/** What says where the admin ports are, as it is read from the environment. */
export type AdminPorts = Pick<Values<typeof processSettings>, "PORT_BASE" | "REPLICAS" | "ADMIN_HOST" | "ADMIN_PORT">;

/** Where this machine reaches the admin port of a process. */
export const adminUrlOf = (
  name: ProcessName,
  { PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT }: AdminPorts,
  replica = 1,
): string => origin(ADMIN_HOST, Number(ADMIN_PORT) || adminPortOf(name, PORT_BASE, replica, REPLICAS));

/** The addresses of services that are not at their default ports. */
export const addressSettings = {
  PET_URL: optional(urls),
  CATEGORY_URL: optional(urls),
  ORDER_URL: optional(urls),
  INVENTORY_URL: optional(urls),
};
