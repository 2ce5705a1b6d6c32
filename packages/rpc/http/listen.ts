/** Listening on a port, and what to do when that fails. */
import type { AddressInfo, Server } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { hostAndPort } from "./address.ts";

/** What an operator can do about an error from listening, by its code; undefined if there is no advice. */
export type ListenAdvice = (code: string, host: string, port: number) => string | undefined;

/** A server can't listen on its address, for a reason that the operator can change. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/**
 * Connections that may wait to be accepted; Node accepts one in each turn of its event loop. The kernel ignores further ones,
 * and their clients try again after a second or more. Linux allows `net.core.somaxconn` at most, 4096 unless changed.
 */
export const BACKLOG = 4096;

export interface ListenOptions {
  readonly host: string;
  /** 0 lets the system choose one. */
  readonly port: number;
  /** A file descriptor of a socket that is already bound there; other processes may have it, too. */
  readonly descriptor?: number | undefined;
}

/**
 * Starts to listen and returns the port, which the system chose if it was 0. Throws `ListenError` with the advice, or the
 * original error if there is none.
 */
export async function listen(server: Server, options: ListenOptions, adviceOn?: ListenAdvice): Promise<number> {
  const { host, port, descriptor } = options;
  const place = descriptor === undefined ? { host, port } : { fd: descriptor };
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen({ ...place, backlog: BACKLOG }, () => resolve());
  try {
    await promise;
  } catch (error) {
    const advice = adviceOn?.((error as NodeJS.ErrnoException).code ?? "", host, port);
    if (advice === undefined) throw error;
    throw new ListenError(`Can't listen on ${hostAndPort(host, port)}: ${advice}`, { cause: error });
  }
  server.off("error", reject);
  return (server.address() as AddressInfo).port;
}

/**
 * Accepts the connections that wait, so that a server that is closed next leaves none behind: the kernel would reset those.
 * The current turn may have looked before they came, so it takes two turns without a connection to know that none waits.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  let idleTurns = 0;
  const note = () => {
    idleTurns = 0;
  };
  server.on("connection", note);
  for (let turns = 0; idleTurns < 2 && turns < BACKLOG; turns++) {
    idleTurns++;
    await nextTurn();
  }
  server.off("connection", note);
}
