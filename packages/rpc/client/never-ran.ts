/** Which failed calls surely never ran, so that they may be made elsewhere, whatever they do. */
import type { ConnectError } from "@connectrpc/connect";

const unsent = new WeakSet<object>();

/** Remembers that the call which failed with this error was not worked on by anybody. */
export function markNeverRan<E extends Error>(error: E): E {
  unsent.add(error);
  return error;
}

/**
 * True when the call surely never ran: there was no connection to send it on, or the server said that it left the stream
 * alone (RFC 9113 section 8.7), as one does that is shutting down and had sent its GOAWAY.
 */
export const neverRan = (error: ConnectError): boolean =>
  unsent.has(error) || (error.cause instanceof Error && unsent.has(error.cause));
