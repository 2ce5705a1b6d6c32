/** The response to a call of an RPC that is not served, in the caller's protocol. */
import { Code, ConnectError } from "@connectrpc/connect";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import type { PlainAnswer } from "../http/plain-answer.ts";
import { type CallForm, errorAnswer } from "./error-answer.ts";

export const NO_SUCH_RPC = "There is no such RPC here.";

/** UNIMPLEMENTED, with the reason ROUTE_NOT_FOUND. */
export function noSuchRpc({ rpcError }: ErrorCatalogue): ConnectError {
  const { rawMessage, details } = rpcError("ROUTE_NOT_FOUND", NO_SUCH_RPC);
  const error = new ConnectError(rawMessage, Code.Unimplemented);
  error.details = details;
  return error;
}

/**
 * Undefined for a request that is no call of gRPC, gRPC-Web or Connect. Unary Connect gets 404, its status for a path that
 * does not exist (501 is for RPCs that exist but are not implemented), for proxies and clients that read only the status.
 */
export const unknownRpcAnswer = (form: CallForm, errors: ErrorCatalogue): PlainAnswer | undefined =>
  errorAnswer(form, noSuchRpc(errors), 404);
