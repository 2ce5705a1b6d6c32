/** Calls that no handler sees: of unknown RPCs, and by unknown content types. They are answered in the caller's protocol. */
import type { IncomingMessage } from "node:http";
import type { MIMEType } from "node:util";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { createEndStreamSerialization, endStreamFlag, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { excerpt } from "connect-transcoder/excerpt";
import { isUtf8, parseType } from "connect-transcoder/http";
import type { ErrorCatalogue } from "../errors.ts";
import type { PlainAnswer } from "../http/answers.ts";

/** What tells the protocol of a call, beside the query of its target. */
type Request = Pick<IncomingMessage, "method" | "headers">;

const endStream = createEndStreamSerialization(undefined);

/** `status` and `more` are those of unary Connect. Undefined for a request that is no call of gRPC, gRPC-Web or Connect. */
function errorAnswer(
  { method, headers }: Request,
  query: string,
  error: ConnectError,
  status: number,
  more: PlainAnswer["headers"] = {},
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
const unaryErrorAnswer = (error: ConnectError, status: number, more: PlainAnswer["headers"] = {}): PlainAnswer => ({
  status,
  headers: { "content-type": "application/json", ...more },
  body: errorToJsonBytes(error, {}),
});

export const NO_SUCH_RPC = "There is no such RPC here.";

/** UNIMPLEMENTED, with the reason ROUTE_NOT_FOUND. */
export function noSuchRpc({ rpcError }: ErrorCatalogue): ConnectError {
  const { rawMessage, details } = rpcError("ROUTE_NOT_FOUND", NO_SUCH_RPC);
  return Object.assign(new ConnectError(rawMessage, Code.Unimplemented), { details });
}

/**
 * Undefined for a request that is no call of gRPC, gRPC-Web or Connect. Unary Connect gets 404, its status for a path that
 * does not exist (501 is for RPCs that exist but are not implemented), for proxies and clients that read only the status.
 */
export const unknownRpcAnswer = (request: Request, query: string, errors: ErrorCatalogue): PlainAnswer | undefined =>
  errorAnswer(request, query, noSuchRpc(errors), 404);

const CONNECT = ["application/json", "application/proto"];
const CONNECT_STREAMS = ["application/connect+json", "application/connect+proto"];
const GRPC_WEB = ["application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json"];
const GRPC = ["application/grpc", "application/grpc+proto", "application/grpc+json"];

export interface Refusal {
  readonly message: string;
  /** The header fields of a 415. */
  readonly headers: Readonly<Record<string, string>>;
  /** In the caller's protocol; undefined for a request of none. */
  readonly answer: PlainAnswer | undefined;
}

/**
 * Judges the content type of each call of an RPC. Connect (2.2) knows no parameters but one charset, and answers what it does
 * not know by a status alone. `notGrpc` is what a caller by gRPC is told where gRPC is not spoken.
 */
export function judgeTypes({ methodKind }: DescMethod, errors: ErrorCatalogue, notGrpc?: string) {
  const ofConnect = methodKind === "unary" ? CONNECT : CONNECT_STREAMS;
  const taken = [...ofConnect, ...GRPC_WEB, ...(notGrpc === undefined ? GRPC : [])];
  const known = new Set(taken);
  const send = `Send ${taken.join(", ")}.`;
  const headers = { "accept-post": taken.join(", ") };
  const errorOf = (message: string) => errors.rpcError("UNSUPPORTED_MEDIA_TYPE", message);

  function problemOf(contentType: string | undefined, type: MIMEType | undefined): string | undefined {
    if (contentType === undefined) return `There is no Content-Type. ${send}`;
    if (type && known.has(type.essence))
      return type.essence.endsWith("json") && !isUtf8(type)
        ? "Content-Type: JSON is in UTF-8. Leave the charset out, or send charset=utf-8."
        : undefined;
    if (notGrpc !== undefined && GRPC.includes(type?.essence ?? "")) return notGrpc;
    return `Content-Type: this RPC does not take ${excerpt(contentType)}. ${send}`;
  }

  /** Returns undefined for a call that can be read, and then leaves it its type as Connect takes it: without parameters. */
  return (request: Request, query: string): Refusal | undefined => {
    const { method } = request;
    const contentType = request.headers["content-type"];
    if (method === "GET") {
      delete request.headers["content-type"]; // of a body that has no meaning (RFC 9110, 9.3.1)
      if (/^(json|proto)$/.test(new URLSearchParams(query).get("encoding") ?? "")) return undefined;
      const message = "encoding: must be json or proto";
      return { message, headers: {}, answer: unaryErrorAnswer(errorOf(message), 415) };
    }
    if (contentType !== undefined && known.has(contentType)) return undefined;
    const type = parseType(contentType ?? "");
    const message = problemOf(contentType, type);
    if (message === undefined) {
      request.headers["content-type"] = type?.essence;
      return undefined;
    }
    const answer = errorAnswer(request, query, errorOf(message), 415, headers);
    return { message, headers, answer };
  };
}
