/** The response to a call that no handler sees, in the caller's protocol. */
import type { IncomingMessage } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { createEndStreamSerialization, endStreamFlag, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { ErrorCatalogue } from "../errors.ts";
import type { PlainAnswer } from "../http/answers.ts";

/** What tells the protocol of a call, beside the query of its target. */
type Request = Pick<IncomingMessage, "method" | "headers">;

const endStream = createEndStreamSerialization(undefined);

/** `status` and `more` are those of unary Connect. Undefined for a request that is no call of gRPC, gRPC-Web or Connect. */
export function errorAnswer(
  { method, headers }: Request,
  query: string,
  error: ConnectError,
  status: number,
  more: Readonly<Record<string, string>> = {},
): PlainAnswer | undefined {
  const type = headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (method === "POST" && /^application\/grpc(-web(-text)?)?(\+[\w.-]+)?$/.test(type)) {
    // Trailers-Only: gRPC's "Responses" allows the status among the headers if there is no message.
    const trailers = new Headers();
    setTrailerStatus(trailers, error);
    return { status: 200, headers: { "content-type": type, ...Object.fromEntries(trailers) }, body: new Uint8Array() };
  }
  if (method === "POST" && /^application\/connect\+[\w.-]+$/.test(type)) {
    const end = endStream.serialize({ metadata: new Headers(), error });
    return { status: 200, headers: { "content-type": type }, body: encodeEnvelope(endStreamFlag, end) };
  }
  const isUnary =
    method === "POST" ? /^application\/(proto|json)$/.test(type) : new URLSearchParams(query).get("connect") === "v1";
  return isUnary ? unaryErrorAnswer(error, status, more) : undefined;
}

/** The response of unary Connect, whatever was asked. */
export const unaryErrorAnswer = (
  error: ConnectError,
  status: number,
  more: Readonly<Record<string, string>> = {},
): PlainAnswer => ({
  status,
  headers: { "content-type": "application/json", ...more },
  body: errorToJsonBytes(error, {}),
});

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
export const unknownRpcAnswer = (request: Request, query: string, errors: ErrorCatalogue): PlainAnswer | undefined =>
  errorAnswer(request, query, noSuchRpc(errors), 404);
