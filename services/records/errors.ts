import * as rpc from "@petstore/rpc/errors";
import type { Reason } from "#errors";

export type { Reason } from "#errors";

/**
 * An error that is meant for the caller, thrown by a rule or a handler. It is independent of the transport: the
 * dispatcher turns it into an RPC error, the gateway into an HTTP error.
 */
export class DomainError extends rpc.DomainError<Reason> {}
