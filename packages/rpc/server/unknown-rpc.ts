/** The response to a call of an RPC that is not served, in the caller's protocol. */
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { createEndStreamSerialization, endStreamFlag, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { ErrorCatalogue } from "../errors/catalogue.ts";

export const NO_SUCH_RPC = "There is no such RPC here.";

/** The parts of a request that tell its protocol. */
export interface CallForm {
  readonly method: string | undefined;
  /** The query of the target, without the question mark. */
  readonly query: string;
  readonly contentType: string | undefined;
}

export interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const endStream = createEndStreamSerialization(undefined);

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
export function unknownRpcAnswer(
  { method, query, contentType = "" }: CallForm,
  errors: ErrorCatalogue,
): PlainAnswer | undefined {
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const error = noSuchRpc(errors);
  if (method === "POST" && /^application\/grpc(-web(-text)?)?(\+[\w.-]+)?$/.test(type)) {
    // Trailers-Only: gRPC's "Responses" allows the status among the headers if there is no message.
    const trailers = new Headers();
    setTrailerStatus(trailers, error);
    const headers = { "content-type": type, ...Object.fromEntries(trailers) };
    return { status: 200, headers, body: new Uint8Array() };
  }
  if (method === "POST" && /^application\/connect\+[\w.-]+$/.test(type)) {
    const end = endStream.serialize({ metadata: new Headers(), error });
    return { status: 200, headers: { "content-type": type }, body: encodeEnvelope(endStreamFlag, end) };
  }
  const isUnary =
    method === "POST" ? /^application\/(proto|json)$/.test(type) : new URLSearchParams(query).get("connect") === "v1";
  if (!isUnary) return undefined;
  const headers = { "content-type": "application/json" };
  return { status: 404, headers, body: errorToJsonBytes(error, {}) };
}
