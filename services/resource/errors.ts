import * as rpc from "@petstore/rpc/errors/domain-error";
import type { Reason } from "#errors";

export type { Reason } from "#errors";

/**
 * An error that a caller has to know, thrown by a rule or a handler. It knows nothing of transports: the dispatcher makes
 * an RPC error of it, the gateway an HTTP one.
 */
export class DomainError extends rpc.DomainError<Reason> {}
