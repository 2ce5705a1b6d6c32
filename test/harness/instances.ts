/** The processes of a petstore under test, with their names and ports. */
import { createServer } from "node:net";
import { type ProcessName, portOf, processNames } from "../../processes/names.ts";

/** One process, such as "pet-2", or with only the name of its kind all replicas of it. */
export type Which = ProcessName | `${ProcessName}-${number}`;

export interface Instance {
  readonly kind: ProcessName;
  /** The kind and a number, which starts at 1. */
  readonly name: Which;
  readonly port: number;
}

/** `replicas` processes of each kind. The first ones have the petstore's default ports, the others higher ones. */
export const instancesOf = (portBase: number, replicas: number): Instance[] =>
  Array.from({ length: replicas }, (_, i) =>
    processNames.map((kind): Instance => {
      return { kind, name: `${kind}-${i + 1}`, port: portOf(kind, portBase) + i * processNames.length };
    }),
  ).flat();

/** The instances that `which` names, at least one. */
export function select(instances: readonly Instance[], which: Which): [Instance, ...Instance[]] {
  const [first, ...others] = instances.filter(({ kind, name }) => which === kind || which === name);
  if (!first) throw new Error(`There is no ${which}.`);
  return [first, ...others];
}

export type Scheme = "http" | "https";
export const urlOf = ({ port }: Instance, scheme: Scheme = "http"): string => `${scheme}://127.0.0.1:${port}`;

/** The environment with the addresses of the services, for every process. */
export const addresses = (instances: readonly Instance[], scheme?: Scheme): Record<string, string> =>
  Object.fromEntries(
    processNames
      .filter((kind) => kind !== "gateway")
      .map((kind) => [
        `${kind.toUpperCase()}_URL`,
        select(instances, kind)
          .map((one) => urlOf(one, scheme))
          .join(","),
      ]),
  );

/** Returns the elements in turn, again from the first after the last. */
export function inTurn<T>(all: readonly T[]): () => T {
  let turn = 0;
  return () => all[turn++ % all.length] as T;
}

/**
 * The first of a row of free ports, one for each process, below those that systems use for outgoing connections. Every other
 * hundred is left to admin ports.
 */
export async function freePorts(replicas = 1): Promise<number> {
  for (;;) {
    const rows = 100 / processNames.length - replicas + 1;
    const row = Math.floor(Math.random() * rows);
    const base = 10_000 + 200 * Math.floor(Math.random() * 100) + processNames.length * row;
    const free = await Promise.all(instancesOf(base, replicas).map(({ port }) => isFree(port)));
    if (free.every(Boolean)) return base;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server
    .once("error", () => resolve(false))
    .listen({ host: "127.0.0.1", port }, () => server.close(() => resolve(true)));
  return promise;
}
