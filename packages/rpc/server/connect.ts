/** What every endpoint of Connect (2.2) is told, and what is mended of the timeouts and errors that it makes. */
import { base64Decode } from "@bufbuild/protobuf/wire";
import {
  Code,
  ConnectError,
  createContextKey,
  type createHandlerContext,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { excerpt, MAX_ERROR_BYTES } from "connect-transcoder/excerpt";
import { isCharset } from "connect-transcoder/http";
import { LONGEST_TIMER_MS } from "../call.ts";
import type { ErrorCatalogue } from "../errors.ts";
import { limitUnpacked } from "./message-limit.ts";

/** gzip and Brotli. Both limit the size of a decompressed message. */
export const limitedCompressions = (errors: ErrorCatalogue): Compression[] =>
  [compressionGzip, compressionBrotli].map(limitUnpacked(errors));

/** What no contract knows is not kept: a call that waits would hold up to 1 MiB of it, a stream for as long as it lasts. */
export const knownFields = { readUnknownFields: false } as const;

/**
 * Options that make a Connect router refuse JSON that is not UTF-8 (RFC 8259 section 8.1). By default its decoder replaces
 * such bytes by U+FFFD, and a record that nobody sent would be stored. Connect's types don't declare this option.
 */
export const strictJson: object = { textDecoder: new TextDecoder("utf-8", { fatal: true }) };

/** Removes a caller's timeout that no timer can run for: Connect would set one to it, and Node fires that at once. */
export function dropEndlessTimeout(header: Headers): void {
  const drop = (name: string, parse: typeof parseGrpcTimeout) => {
    const { timeoutMs = 0 } = parse(header.get(name), Number.POSITIVE_INFINITY);
    if (timeoutMs > LONGEST_TIMER_MS) header.delete(name);
  };
  drop("connect-timeout-ms", parseConnectTimeout);
  drop("grpc-timeout", parseGrpcTimeout);
}

/** Whether the message of a call was decoded: later errors are not about decoding. */
const decodedKey = createContextKey(false);

/**
 * Changes Connect's error about a message that it could not decode, a server error without a reason: adds the reason
 * VALIDATION_FAILED, and replaces INTERNAL by INVALID_ARGUMENT. Errors with one of the codes `others` get the reason, too.
 */
export function explainDecoding(
  error: unknown,
  { rpcError, reasonOf }: ErrorCatalogue,
  others: readonly Code[] = [],
): void {
  if (!(error instanceof ConnectError) || reasonOf(error)) return;
  if (![Code.InvalidArgument, Code.Internal, ...others].includes(error.code)) return; // not about a message
  const { code, rawMessage, details } = rpcError("VALIDATION_FAILED", error.rawMessage);
  Object.assign(error, { code: error.code === Code.Internal ? code : error.code, rawMessage, details });
}

/** By which each protocol says what compressions it takes. */
const ACCEPTED = ["accept-encoding", "connect-accept-encoding", "grpc-accept-encoding"];

/**
 * Says with the refusal of a compression which ones are taken: Connect (2.2) notes it with its error, and drops it there. And
 * that it is none, if it is a charset.
 */
function explainCompression({ requestHeader, responseHeader }: HandlerContext, error: ConnectError): void {
  const name = ACCEPTED.find((one) => error.metadata.has(one));
  if (name === undefined || error.code !== Code.Unimplemented) return;
  responseHeader.set(name, error.metadata.get(name) as string);
  const coding = requestHeader.get("content-encoding") ?? "";
  if (name === "accept-encoding" && isCharset(coding))
    Object.assign(error, { rawMessage: `${error.rawMessage}. ${coding} is a charset: it belongs into Content-Type` });
}

/**
 * Calls `see` with the error of a call before Connect serializes it: Connect aborts the call with that error first. The
 * call's signal would not do, because it aborts only once, and the caller's deadline may have passed before. Afterwards the
 * message is one that can be sent.
 */
export function beforeFailure(context: HandlerContext, see: (error: unknown) => void): void {
  const call = context as ReturnType<typeof createHandlerContext>;
  const { abort } = call;
  call.abort = (error) => {
    if (error instanceof ConnectError) explainCompression(context, error);
    see(error);
    if (error instanceof ConnectError) Object.assign(error, { rawMessage: sayable(error.rawMessage) });
    abort(error);
  };
}

/**
 * The message of an error of Connect's, which may quote from a request: as long as any other, for it may quote a whole header,
 * and with U+FFFD for half of a surrogate pair, which gRPC can't encode.
 */
export const sayable = (message: string): string => excerpt(message.toWellFormed(), MAX_ERROR_BYTES);

/** Tells `explainUnreadable` which messages were decoded. */
export const noteDecoded: Interceptor = (next) => (request) => {
  request.contextValues.set(decodedKey, true);
  return next(request);
};

/**
 * To be called in the request gate of a Connect router: unary Connect messages that can't be decoded fail with
 * VALIDATION_FAILED. In gRPC, gRPC-Web and streams the code stays INTERNAL, as in gRPC ("Status codes and their use in gRPC").
 */
export function explainUnreadable(context: HandlerContext, errors: ErrorCatalogue): void {
  const { values, protocolName, method } = context;
  const isUnaryConnect = protocolName === "connect" && method.methodKind === "unary";
  beforeFailure(context, (error) => {
    if (isUnaryConnect && !values.get(decodedKey)) explainDecoding(error, errors);
  });
  ensureQuery(context, errors);
}

/**
 * Throws VALIDATION_FAILED if the message of a Connect GET is declared as base64 and is not, or is not UTF-8. Connect would
 * decode such a message to a different one.
 */
export function ensureQuery({ requestMethod, url }: HandlerContext, { rpcError }: ErrorCatalogue): void {
  if (requestMethod !== "GET") return;
  const { search, searchParams } = new URL(url);
  try {
    for (const part of search.slice(1).split("&"))
      if (new URLSearchParams(part).has("message")) decodeURIComponent(part);
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
