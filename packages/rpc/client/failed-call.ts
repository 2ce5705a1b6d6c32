/** What is known of a call that failed: whether it ran, and whether it still runs or may be repeated. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { field as fieldOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import type { ErrorCatalogue, OwnReason } from "../errors.ts";

const broken = new Set([Code.Unavailable, Code.Unknown, Code.Internal, Code.Aborted, Code.Canceled, Code.DataLoss]);

/**
 * Whether a call failed in transit. `broken` are the codes by which Connect reports a connection that broke, a stream that was
 * reset, or a reply that was cut short. An error with a reason came from the service, and an aborted signal proves nothing.
 */
export const wayBroke = (error: ConnectError, { reasonOf }: ErrorCatalogue, signal: AbortSignal | undefined): boolean =>
  !signal?.aborted && !reasonOf(error) && broken.has(error.code);

/**
 * Whether the process at the address has no such RPC: it is of another version, or another service has taken the address
 * over. It looks for the RPC before it does anything, so the call never ran.
 */
export const isUnknownRpc = (error: ConnectError, { reasonOf }: ErrorCatalogue): boolean =>
  error.code === Code.Unimplemented && reasonOf(error)?.reason === "ROUTE_NOT_FOUND";

/** Yields the messages of a stream. If it ends with an error, throws what `asFailure` makes of that. */
export async function* translating<T>(
  messages: AsyncIterable<T>,
  asFailure: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    throw asFailure(thrown);
  }
}

/** The error for a call that was not made at all. It is no RpcError, which a service would pass on to its own caller. */
export function notMade({ rpcError }: ErrorCatalogue, reason: OwnReason, message: string): ConnectError {
  const { rawMessage, code, details } = rpcError(reason, message);
  const error = new ConnectError(rawMessage, code);
  error.details = details;
  return error;
}

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

const keyFields = new WeakMap<DescMethod, string | undefined>();

/** The field of the request message for an idempotency key, if the method takes one. */
export function keyField(method: DescMethod): string | undefined {
  if (!keyFields.has(method)) {
    const field = method.input.fields.find((one) => getOption(one, fieldOption).header === "Idempotency-Key");
    keyFields.set(method, field?.localName);
  }
  return keyFields.get(method);
}

/** Whether the request carries an idempotency key. */
function isKeyed(method: DescMethod, input: object): boolean {
  const name = keyField(method);
  return name !== undefined && (input as Record<string, unknown>)[name] !== undefined;
}

/** Whether running a call twice has the effect of running it once: reads, idempotent methods, creates with a key. */
export const isReplayable = (method: DescMethod, input: object): boolean =>
  method.idempotency === Level.NO_SIDE_EFFECTS || method.idempotency === Level.IDEMPOTENT || isKeyed(method, input);
