/** A call in terms of the HTTP API: the operation that does the same, its request and its answer. */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../packages/client/gen/google/rpc/error_details_pb.ts";
import { type HttpOperation, operations, phrases, statuses } from "../gen/http.ts";

export interface HttpRequest {
  readonly verb: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Exact | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Exact | undefined;
}

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (message: Message | undefined): Fields => (message ?? {}) as unknown as Fields;

/** Undefined if the HTTP API has no such operation, as for batches. */
export function operationOf(method: DescMethod, request: Message): HttpOperation | undefined {
  const all = operations.filter(({ rpc }) => rpc === `${method.parent.typeName}/${method.name}`);
  const { updateMask } = fieldsOf(request);
  return all.find(({ mask }) => (mask !== undefined) === (updateMask !== undefined)) ?? all[0];
}

export function httpRequest(operation: HttpOperation, { input }: DescMethod, request: Message): HttpRequest {
  const fields = fieldsOf(request);
  const field = (name: string) => input.field[name] as DescField;
  const filled = (name: string) => {
    const value = fields[name];
    return value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
  };
  const path = operation.params.reduce((text, name) => text.replace(`{${name}}`, `${fields[name]}`), operation.path);
  const query = operation.query.filter(filled).flatMap((name) => {
    const value = shownValue(field(name), fields[name]);
    return (Array.isArray(value) ? value : [value]).map((each) => [field(name).jsonName, `${each}`]);
  });
  const bodyField = operation.body === undefined ? undefined : field(operation.body);
  return {
    verb: operation.verb,
    target: query.length > 0 ? `${path}?${new URLSearchParams(query)}` : path,
    headers: operation.headers.filter(([, name]) => filled(name)).map(([header, name]) => [header, `${fields[name]}`]),
    body:
      bodyField?.message &&
      bodyOf(bodyField.message, fieldsOf(request)[bodyField.localName] as Message | undefined, fields),
  };
}

/** Fields that the mask names and the record lacks are `null`, which removes them in a merge patch (RFC 7396). */
function bodyOf(desc: DescMessage, record: Message | undefined, { updateMask }: Fields): Exact {
  const members = record ? (httpJson(desc, record) as Readonly<Record<string, Exact>>) : {};
  const paths = (updateMask as { readonly paths: readonly string[] } | undefined)?.paths;
  if (!paths) return members;
  const named = desc.fields.filter(({ name }) => paths.includes(name));
  return Object.fromEntries(named.map(({ jsonName }) => [jsonName, members[jsonName] ?? null]));
}

export function httpAnswer(operation: HttpOperation, { output }: DescMethod, answer: Message): HttpAnswer {
  if (operation.status === 204) return { status: 204, headers: [], body: undefined };
  const shown = operation.response === undefined ? undefined : output.field[operation.response];
  const value = shown && fieldsOf(answer)[shown.localName];
  const record = shown?.fieldKind === "message" ? fieldsOf(value as Message | undefined) : undefined;
  const { nextPageToken } = fieldsOf(answer);
  const location = operation.location?.replaceAll(/\{(\w+)\}/g, (_, name: string) => `${record?.[name]}`);
  return {
    status: operation.status,
    headers: [
      ...(location ? [["Location", location] as const] : []),
      ...(record?.etag ? [["ETag", `${record.etag}`] as const] : []),
      ...(nextPageToken ? [["Link", `<…pageToken=${nextPageToken}>; rel="next"`] as const] : []),
    ],
    body: shown ? shownValue(shown, value) : httpJson(output, answer),
  };
}

/** The petstore's reason, or UNAVAILABLE if no petstore answered. */
export const reasonOf = (error: ConnectError): string =>
  error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "petstore")?.reason ?? "UNAVAILABLE";

/** The error record, from its reason. */
export function httpError(reason: string, message: string): HttpAnswer {
  const status = statuses[reason] ?? 500;
  return { status, headers: [], body: { code: reason, message, status } };
}

export function requestText({ verb, target, headers, body }: HttpRequest, host: string): string {
  const lines = [`${verb} ${target} HTTP/1.1`, `Host: ${host}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (body === undefined) return lines.join("\n");
  return `${lines.join("\n")}\nContent-Type: application/json\n\n${textOf(body, 2)}`;
}

const phraseOf = (status: number): string => `${status} ${phrases[status] ?? ""}`.trim();

export function answerText({ status, headers, body }: HttpAnswer): string {
  const lines = [`HTTP/1.1 ${phraseOf(status)}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  return body === undefined
    ? lines.join("\n")
    : `${lines.join("\n")}\nContent-Type: application/json\n\n${textOf(body, 2)}`;
}

/** A JSON value as the HTTP API shows messages: exact integers of 64 bits, enums in lower case, no entity tags. */
export type Exact = null | boolean | number | bigint | string | readonly Exact[] | { readonly [member: string]: Exact };

/** The members of a message that are set, without those that `leftOut` names. */
export function httpJson(desc: DescMessage, message: Message, leftOut: readonly string[] = ["etag"]): Exact {
  if (desc.typeName.startsWith("google.protobuf.")) return toJson(desc, message) as Exact;
  const it = reflect(desc, message);
  const shown = desc.fields.filter((field) => it.isSet(field) && !leftOut.includes(field.localName));
  return Object.fromEntries(
    shown.map((field) => [field.jsonName, shownValue(field, (message as never)[field.localName])]),
  );
}

/** The value of a field of a message. */
function shownValue(field: DescField, value: unknown): Exact {
  if (field.fieldKind === "list") return (value as unknown[]).map((each) => single(field, each));
  return single(field, value);
}

function single(field: DescField, value: unknown): Exact {
  if (field.message) return httpJson(field.message, value as Message);
  if (field.enum) return enumWord(field.enum, value as number);
  return field.scalar === ScalarType.BYTES ? "" : (value as Exact);
}

/** PET_STATUS_AVAILABLE is "available". A value that only a newer service knows is its number. */
const enumWord = (desc: DescEnum, number: number): Exact =>
  desc.value[number]?.name.slice(desc.sharedPrefix?.length ?? 0).toLowerCase() ?? number;

/** As JSON text, on one line or on several. Integers that a record has are below 2^53. */
export const textOf = (value: Exact, indent?: number): string =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? Number(each) : each), indent);
