/** What is known of a call that failed: whether it never ran, or whether the service still works on it. */
import type { ConnectError } from "@connectrpc/connect";

const unsent = new WeakSet<object>();

/**
 * Remembers that no server worked on the call that failed with this error. So it may be sent to another replica even if it has
 * side effects.
 */
export function markNeverRan<E extends Error>(error: E): E {
  unsent.add(error);
  return error;
}

/**
 * Whether the call certainly never ran: there was no connection to send it on, or the server refused the stream without
 * processing it (RFC 9113 section 8.7), as a server does that is shutting down and has sent its GOAWAY.
 */
export const neverRan = (error: ConnectError): boolean =>
  unsent.has(error) || (error.cause instanceof Error && unsent.has(error.cause));

const running = new WeakMap<object, Promise<boolean>>();

/**
 * Remembers that a service still works on the call that was given up with this error, until `ended` resolves. Until then
 * admission control counts it as under way.
 */
export function markRunning<E extends Error>(error: E, ended: Promise<boolean>): E {
  running.set(error, ended);
  return error;
}

/**
 * Resolves when the call that was given up with this error is over at the service: to true if it was answered, to false if
 * that will never be known. Undefined if the call is over already.
 */
export const stillRunning = (error: unknown): Promise<boolean> | undefined => running.get(error as object);
