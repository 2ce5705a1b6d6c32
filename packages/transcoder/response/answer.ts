/** From the answer of an RPC to an HTTP response. */
import { type DescField, isFieldSet, type Message } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { Codec } from "../contract/codec.ts";
import { type FieldPath, jsonPath, lastOf } from "../contract/field-path.ts";
import { isClamped } from "../contract/fields.ts";
import { answersBytes, type Operation } from "../contract/operation.ts";
import { parameterFinder } from "../contract/query-parameters.ts";
import { remembered } from "../contract/remembered.ts";
import { addressText } from "../contract/template.ts";
import { JSON_UTF8 } from "../policy/media.ts";
import type { ResponseHeaders } from "../policy/metadata.ts";
import { splitTarget } from "../request/http.ts";
import { formatQuery, parseQuery } from "../request/parameters.ts";
import { scalarFromText } from "../request/scalars.ts";
import { bodyWriter, contentOf } from "./encode.ts";
import type { TellUnknown } from "./scalars.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The Content-Type of the body. */
  readonly type: string;
  /** JSON text, or bytes; undefined when the status allows no body. */
  readonly body: string | Uint8Array | undefined;
  /** What the caller gets of the metadata of the RPC's answer. */
  readonly metadata?: ResponseHeaders | undefined;
}

interface AnswerOptions {
  readonly basePath: string;
  readonly jsonNamesOnly?: boolean;
  readonly codec: Codec;
  readonly tellUnknown?: TellUnknown;
  /** Where the record at a path is found. */
  readonly addressOf?: ((path: string) => string) | undefined;
}

/**
 * Compiles what an operation answers with. `metadata` are the headers of the RPC's answer, `target` is that of the
 * request, and `isOne` whether it asks for one record.
 */
export function answerer(
  operation: Operation,
  { basePath, jsonNamesOnly, codec, tellUnknown, addressOf = (path) => path }: AnswerOptions,
) {
  const { response, responseHeaders, successStatus, location, paging, verb } = operation;
  // RFC 9111, 5.2.2: what was read may be kept and asked for again under its entity tag, but is never shown without asking. The
  // answer to a write says what became of that one request, a replay even of an earlier one: nobody may take it for the record.
  const cacheControl = verb === "GET" ? "no-cache" : "no-store";
  // Reads have no replays. For them, a transport that makes its headers on demand need not make them.
  const mayBeReplay = verb !== "GET";
  const nextTarget = paging && nextTargetOf(operation, paging.pageToken, jsonNamesOnly);
  const bytesOf = answersBytes(operation) ? answeredBytes(operation) : undefined;
  const write = bodyWriter(operation, codec, tellUnknown);
  const recordOf = (message: Message): Message | undefined => {
    const body = response ? field(message, response.localName) : message;
    return response?.fieldKind === "list" ? (body as Message[])[0] : (body as Message);
  };

  return (message: Message, metadata: Headers, target: string, isOne = operation.record !== undefined): Answer => {
    const headers: Record<string, string> = { "cache-control": cacheControl };
    const record = isOne ? recordOf(message) : undefined;
    if (record) {
      for (const { name, field: desc } of responseHeaders) {
        const value = headerValue(record, desc);
        if (NOT_IN_A_HEADER.test(value)) throw new Error(`${name}: ${JSON.stringify(value)} can't be a header's value`);
        if (value !== "") headers[name.toLowerCase()] = value;
      }
      if (location) headers.location = addressOf(basePath + location(record));
    }
    if (mayBeReplay && metadata.get("idempotent-replayed") === "true") headers["idempotent-replayed"] = "true";
    const next = paging && field(message, paging.nextPageToken.localName);
    const token = next ? addressText(next) : "";
    if (token) headers.link = `<${nextTarget?.(target, token)}>; rel="next"`;
    if (successStatus === 204) return { status: successStatus, headers, type: JSON_UTF8, body: undefined };
    if (!bytesOf) return { status: successStatus, headers, type: JSON_UTF8, body: write(message) };
    const { type, data } = bytesOf(message);
    return { status: successStatus, headers, type, body: data };
  };
}

/** Empty for a field that was not sent. Bytes are in base64, as in JSON. */
function headerValue(message: Message, desc: DescField): string {
  if (desc.presence !== FeatureSet_FieldPresence.IMPLICIT && !isFieldSet(message, desc)) return "";
  const value = field(message, desc.localName);
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : String(value);
}

/** What node refuses to send (RFC 9110, 5.5). */
const NOT_IN_A_HEADER = /[^\t\x20-\x7e\x80-\xff]/;

const field = (fields: object, localName: string): unknown => (fields as Record<string, unknown>)[localName];

/**
 * The same request for the next page, with every known parameter but the token. Ignored parameters and digits beyond a limit
 * are left out: they could make the link longer than a target may be.
 */
function nextTargetOf(operation: Operation, pageToken: DescField, jsonNamesOnly?: boolean) {
  const find = parameterFinder(operation, jsonNamesOnly);
  /** Undefined for a parameter that is shown as it was sent. */
  const clampedReader = remembered((field: DescField) =>
    isClamped(field) ? scalarFromText(field.scalar as never, undefined, true) : undefined,
  );
  return (target: string, token: string): string => {
    const { path, query } = splitTarget(target);
    // As they were sent: encoded anew, they could be three times as long.
    const sent = query.split("&").filter((pair) => pair !== "");
    const others = parseQuery(query).flatMap(([name, value], i) => {
      const found = find(name);
      if (!found || found.isInPath || found.path[0] === pageToken) return [];
      const read = clampedReader(lastOf(found.path));
      return [read ? clamped(found.path, value, read) : (sent[i] as string)];
    });
    const next = `${path}?${[...others, formatQuery([[pageToken.jsonName, token]])].join("&")}`;
    return next.replaceAll(NOT_IN_A_LINK, encodeURIComponent);
  };
}

/** Characters that no URI may have (RFC 3986, 2), which some callers send: they could end a link (RFC 8288). */
const NOT_IN_A_LINK = /[<>"\\^`{|}]/g;

/** A parameter whose value may have had more digits than its type can hold. */
function clamped(path: FieldPath, value: string, read: (text: string) => unknown): string {
  const values = lastOf(path).fieldKind === "list" ? value.split(",") : [value];
  return formatQuery([[jsonPath(path), values.map(read).join(",")]]);
}

/** Parameters of lists that filter nothing, by the names that they have everywhere (AIP-132, AIP-158). */
const NO_FILTERS: readonly string[] = ["page_token", "page_size", "limit", "order_by"];

/** Compiles whether a request asks for one record, as it is by itself. A list with an id filter may; other lists never do. */
export function asksForOne({ idFilter, query, record }: Operation): (request: Message) => boolean {
  if (!idFilter) return () => record !== undefined;
  const others = query.filter((field) => field !== idFilter && !NO_FILTERS.includes(field.name));
  return (request) => {
    const ids = (request as unknown as Record<string, readonly unknown[]>)[idFilter.localName];
    return ids?.length === 1 && !others.some((field) => isFieldSet(request, field));
  };
}

export interface Bytes {
  readonly type: string;
  readonly data: Uint8Array;
}

/** What says nothing of its bytes (RFC 9110, 8.3). */
export const ANY_BYTES = "application/octet-stream";

/** Compiles what a response tells: itself, or the field that `response_body` names. What it throws is the service's fault. */
export const answeredBytes =
  ({ response }: Operation) =>
  (message: Message): Bytes => {
    if (response && !isFieldSet(message, response)) return { type: ANY_BYTES, data: new Uint8Array() };
    const body: { contentType: string; data: Uint8Array } = response
      ? contentOf(message, response)
      : (message as never);
    if (/[^\t\x20-\x7e]/.test(body.contentType))
      throw new Error(`content_type: ${JSON.stringify(body.contentType)} is no media type`);
    return { type: body.contentType || ANY_BYTES, data: body.data };
  };
