/** Closes a port without losing a request that is on its way. */
import type { Server } from "node:http";
import { Server as NetServer } from "node:net";
import { acceptWaiting } from "./listen.ts";

/** While a server closes, how often connections that have become idle are closed, in milliseconds. */
const IDLE_CHECK_MS = 50;

/** What a server that was made by `createOnePortServer` does to its connections. */
export interface Port {
  isClosing: boolean;
  readonly goAway: () => void;
  readonly announceEnd: () => void;
  readonly endIdle: () => void;
  readonly endAll: () => void;
}
export const ports = new WeakMap<Server, Port>();

/**
 * Tells clients to go elsewhere while the server goes on: those of HTTP/2 at once (GOAWAY), those of HTTP/1.1 with the last
 * answer on their connection. Requests that have begun are finished. A client that connects again is served until the server
 * closes; otherwise it would connect again and again.
 */
export function announceClose(server: Server): void {
  ports.get(server)?.announceEnd();
  ports.get(server)?.goAway();
}

/** Ends all connections at once. */
export const cutOff = (server: Server): void => ports.get(server)?.endAll();

/**
 * Accepts no more connections, and resolves when the requests under way are answered and all connections are closed; what
 * remains after `graceMs` is cut off. `onClosing` is called once no new connection is accepted.
 */
export async function closePort(server: Server, graceMs: number, onClosing: () => void = () => {}): Promise<void> {
  const port = ports.get(server);
  if (port) port.isClosing = true;
  port?.announceEnd();
  const { promise, resolve } = Promise.withResolvers<void>();
  const late = setTimeout(cutOff, graceMs, server);
  await acceptWaiting(server);
  // Not that of an HTTP server, which would first end connections whose last answer is still being written.
  NetServer.prototype.close.call(server, () => resolve());
  port?.goAway();
  const idle = setInterval(() => port?.endIdle(), IDLE_CHECK_MS);
  onClosing();
  await promise;
  clearTimeout(late);
  clearInterval(idle);
}
