/** Tells which failed calls certainly never ran, so that they may be sent to another replica even if they have side effects. */
import type { ConnectError } from "@connectrpc/connect";

const unsent = new WeakSet<object>();

/** Remembers that no server worked on the call that failed with this error. */
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
