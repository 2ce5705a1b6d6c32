/** The response to a call that no handler sees, in the caller's protocol. */
import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { createEndStreamSerialization, endStreamFlag, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { PlainAnswer } from "../http/plain-answer.ts";

/** The parts of a request that tell its protocol. */
export interface CallForm {
  readonly method: string | undefined;
  /** The query of the target, without the question mark. */
  readonly query: string;
  readonly contentType: string | undefined;
}

const endStream = createEndStreamSerialization(undefined);

/** `status` and `more` are those of unary Connect. Undefined for a request that is no call of gRPC, gRPC-Web or Connect. */
export function errorAnswer(
  { method, query, contentType = "" }: CallForm,
  error: ConnectError,
  status: number,
  more: Readonly<Record<string, string>> = {},
): PlainAnswer | undefined {
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
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
