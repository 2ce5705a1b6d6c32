/**
 * Metadata as a link carries it. Headers: the two that every call has as fields of their own, the others by name. A failure:
 * exactly what a plain RPC has in its trailers.
 */
import { fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { REQUEST_ID_HEADER } from "connect-transcoder/request-id";
import { CALLER_HEADER } from "../call.ts";
import { fromAny, toAny } from "../errors.ts";
import type { Answer, AnswerSchema, Failure } from "../gen/link/internal/v1/link_service_pb.ts";

interface Field {
  readonly name: string;
  readonly value: string;
}

/** The headers of a call, as fields of the message `Call`. */
export interface CallHeaders {
  readonly requestId: string;
  readonly caller: string;
  readonly headers: Field[];
}

export const toFields = (headers: Headers): Field[] => [...headers].map(([name, value]) => ({ name, value }));

export function toHeaders(fields: readonly Field[]): Headers {
  const headers = new Headers();
  for (const { name, value } of fields) headers.append(name, value);
  return headers;
}

/** Most callers pass a plain object, and creating Headers from it would cost more than everything done with them. */
export function toCallHeaders(init: HeadersInit | undefined): CallHeaders {
  const all = { requestId: "", caller: "", headers: [] as Field[] };
  if (init === undefined) return all;
  const add = (name: string, value: string) => {
    if (name === REQUEST_ID_HEADER) all.requestId = value;
    else if (name === CALLER_HEADER) all.caller = value;
    else all.headers.push({ name, value });
  };
  if (Object.getPrototypeOf(init) === Object.prototype)
    for (const name of Object.keys(init)) add(name.toLowerCase(), `${(init as Record<string, string>)[name]}`);
  else new Headers(init).forEach((value, name) => void add(name, value));
  return all;
}

export function fromCallHeaders({ requestId, caller, headers }: CallHeaders): Headers {
  const all = toHeaders(headers);
  if (requestId !== "") all.set(REQUEST_ID_HEADER, requestId);
  if (caller !== "") all.set(CALLER_HEADER, caller);
  return all;
}

type AnswerInit = MessageInitShape<typeof AnswerSchema>;

export const failedAnswer = (id: number, { code, rawMessage: message, details, metadata }: ConnectError) =>
  ({
    id,
    outcome: {
      case: "failure",
      value: { code, message, details: details.map((detail) => toBinary(AnySchema, toAny(detail))) },
    },
    headers: toFields(metadata),
  }) satisfies AnswerInit;

export function toError({ code, message, details }: Failure, headers: Answer["headers"]): ConnectError {
  const error = new ConnectError(message, code, toHeaders(headers));
  error.details = details.map((bytes) => fromAny(fromBinary(AnySchema, bytes)));
  return error;
}
