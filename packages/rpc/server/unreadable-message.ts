/**
 * The answer to a message of unary Connect that can't be decoded, which would be an error of the server, without a reason.
 * In gRPC, gRPC-Web and streams it stays INTERNAL, as gRPC has it ("Status codes and their use in gRPC").
 */
import { base64Decode } from "@bufbuild/protobuf/wire";
import {
  Code,
  ConnectError,
  createContextKey,
  type createHandlerContext,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { isMessage } from "./protocol-fields.ts";

/** Whether the message of a call was decoded: what goes wrong later is not about it. */
const decodedKey = createContextKey(false);

/** Codes of Connect's errors about a message. */
const aboutTheMessage: readonly Code[] = [Code.InvalidArgument, Code.Internal];

/**
 * Gives the reason VALIDATION_FAILED to an error of Connect's about a message that it could not decode, in place. Where
 * Connect calls it an error of the server, its code becomes INVALID_ARGUMENT. `others` are more codes to explain.
 */
export function explainDecoding(
  error: unknown,
  { rpcError, reasonOf }: ErrorCatalogue,
  others: readonly Code[] = [],
): void {
  if (!(error instanceof ConnectError) || reasonOf(error) || ![...aboutTheMessage, ...others].includes(error.code))
    return;
  const { code, rawMessage, details } = rpcError("VALIDATION_FAILED", error.rawMessage);
  Object.assign(error, { code: error.code === Code.Internal ? code : error.code, rawMessage, details });
}

/**
 * Calls `see` with what a call fails with, before Connect writes it down: it aborts the call with it first. The signal of
 * the call would not do, for it tells of one end alone, and the caller's time may have been over before. Half of a
 * surrogate pair, which JSON may hold and an error quote, is U+FFFD afterwards: gRPC can't write it.
 */
export function beforeFailure(context: HandlerContext, see: (error: unknown) => void): void {
  const call = context as ReturnType<typeof createHandlerContext>;
  const { abort } = call;
  call.abort = (error) => {
    see(error);
    if (error instanceof ConnectError) Object.assign(error, { rawMessage: error.rawMessage.toWellFormed() });
    abort(error);
  };
}

/** A gate of a Connect router and the interceptor that belongs to it: what can't be decoded is VALIDATION_FAILED. */
export function explainUnreadable(errors: ErrorCatalogue) {
  const requestGate = async (context: HandlerContext) => {
    const { values, protocolName, method } = context;
    const isUnaryConnect = protocolName === "connect" && method.methodKind === "unary";
    beforeFailure(context, (error) => {
      if (isUnaryConnect && !values.get(decodedKey)) explainDecoding(error, errors);
    });
    ensureQuery(context, errors);
  };
  const interceptor: Interceptor = (next) => (request) => {
    request.contextValues.set(decodedKey, true);
    return next(request);
  };
  return { requestGate, interceptors: [interceptor] };
}

/**
 * Throws VALIDATION_FAILED for the message of a Connect GET that says it is base64 and is not, or else is not UTF-8, of which
 * Connect would make the message of another request.
 */
export function ensureQuery({ requestMethod, url }: HandlerContext, { rpcError }: ErrorCatalogue): void {
  if (requestMethod !== "GET") return;
  const { search, searchParams } = new URL(url);
  try {
    for (const part of search.slice(1).split("&")) if (isMessage(part)) decodeURIComponent(part);
  } catch (cause) {
    throw rpcError("VALIDATION_FAILED", "message: must be UTF-8 in the query, or base64 with base64=1", cause);
  }
  if (searchParams.get("base64") !== "1") return;
  try {
    base64Decode(searchParams.get("message") ?? "");
  } catch (cause) {
    throw rpcError("VALIDATION_FAILED", "message: must be base64, for the query says base64=1", cause);
  }
}
