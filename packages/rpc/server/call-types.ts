/**
 * The content types by which an RPC can be called, and the response to a call by another. Connect (2.2) knows no parameters
 * but one charset, and answers what it does not know by a status alone.
 */
import type { IncomingMessage } from "node:http";
import type { MIMEType } from "node:util";
import type { DescMethod } from "@bufbuild/protobuf";
import { excerpt } from "connect-transcoder/excerpt";
import { isUtf8, parseType } from "connect-transcoder/http";
import type { ErrorCatalogue } from "../errors.ts";
import type { PlainAnswer } from "../http/answers.ts";
import { errorAnswer, unaryErrorAnswer } from "./error-answer.ts";

const CONNECT = ["application/json", "application/proto"];
const CONNECT_STREAMS = ["application/connect+json", "application/connect+proto"];
const GRPC_WEB = ["application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json"];
const GRPC = ["application/grpc", "application/grpc+proto", "application/grpc+json"];

export interface CallTypeOptions {
  readonly errors: ErrorCatalogue;
  /** What a caller by gRPC is told where gRPC is not spoken. */
  readonly notGrpc?: string;
}

export interface Refusal {
  readonly message: string;
  /** The header fields of a 415. */
  readonly headers: Readonly<Record<string, string>>;
  /** In the caller's protocol; undefined for a request of none. */
  readonly answer: PlainAnswer | undefined;
}

/** Returns undefined for a call that can be read, and then leaves it its type as Connect takes it: without parameters. */
export type JudgeType = (request: Pick<IncomingMessage, "method" | "headers">, query: string) => Refusal | undefined;

export function judgeTypes({ methodKind }: DescMethod, { errors, notGrpc }: CallTypeOptions): JudgeType {
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

  return (request, query) => {
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
