/** The processes of a petstore under test, by name and by port. */
import { createServer } from "node:net";
import { type ProcessName, portOf, processNames } from "../../config.ts";

/** One process, such as "pet-2", or with the name of its kind alone all replicas of it. */
export type Which = ProcessName | `${ProcessName}-${number}`;

export interface Instance {
  readonly kind: ProcessName;
  /** The kind and a number from 1 on. */
  readonly name: Which;
  readonly port: number;
}

/** So many replicas of each kind. The first ones are where a petstore has them by default, the others above them. */
export const instancesOf = (portBase: number, replicas: number): Instance[] =>
  Array.from({ length: replicas }, (_, i) =>
    processNames.map((kind): Instance => {
      return { kind, name: `${kind}-${i + 1}`, port: portOf(kind, portBase) + i * processNames.length };
    }),
  ).flat();

/** Those that are meant, one at least. */
export function select(instances: readonly Instance[], which: Which): [Instance, ...Instance[]] {
  const [first, ...others] = instances.filter(({ kind, name }) => which === kind || which === name);
  if (!first) throw new Error(`There is no ${which}.`);
  return [first, ...others];
}

export type Scheme = "http" | "https";
export const urlOf = ({ port }: Instance, scheme: Scheme = "http"): string => `${scheme}://127.0.0.1:${port}`;

/** What tells every process where the services are. */
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

/** One after the other, and round again. */
export function inTurn<T>(all: readonly T[]): () => T {
  let turn = 0;
  return () => all[turn++ % all.length] as T;
}

/** The first of as many free ports in a row as there are processes, below those that systems give to outgoing connections. */
export async function freePorts(replicas = 1): Promise<number> {
  for (;;) {
    const base = 10_000 + processNames.length * Math.floor(Math.random() * (20_000 / processNames.length));
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
