import type { AddressInfo, Server } from "node:net";

/** A server can't listen where it should, for a reason that the operator can change. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** Starts to listen and gives the port, which the system chose if it was 0. Throws `ListenError`. */
export async function listen(server: Server, host: string, port: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen({ host, port }, () => resolve());
  try {
    await promise;
  } catch (error) {
    throw explain(error, host, port);
  }
  server.off("error", reject);
  return (server.address() as AddressInfo).port;
}

/** The address by which this machine reaches a server that listens on `host`. */
export function origin(host: string, port: number): string {
  const reachable = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

/** Says what an error of listening means and what to do; gives back any other error as it is. */
export function explain(error: unknown, host: string, port: number): unknown {
  const advice = new Map([
    ["EADDRINUSE", `port ${port} is taken, perhaps by another petstore: end it, or move this one with PORT_BASE=9080.`],
    ["EACCES", `port ${port} needs privileges that this user has not: choose another with PORT or PORT_BASE.`],
    ["EADDRNOTAVAIL", `HOST=${host} is no address of this machine: use HOST=127.0.0.1 or one that it has.`],
    ["ENOTFOUND", `HOST=${host} is no name that this machine can find: use HOST=127.0.0.1 or an IP address.`],
  ]).get((error as NodeJS.ErrnoException).code ?? "");
  return advice === undefined ? error : new ListenError(`Can't listen on ${host}:${port}: ${advice}`, { cause: error });
}
