/** From the descriptors of a service to the HTTP operations that its annotations ask for. */
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { HttpRule } from "../gen/google/api/http_pb.ts";
import { operation as operationOption, scope, tag } from "../gen/transcoder/v1/annotations_pb.ts";
import { isInteger } from "../validation/value-rules.ts";
import { headerOf, isClamped, isOutputOnly, isUpdateMask } from "./fields.ts";
import { ensureServed, ensureWhole } from "./served.ts";
import { type Stream, streamOf } from "./stream.ts";
import { linkTo, parseTemplate, type Segment, showTemplate } from "./template.ts";

export type Verb = "GET" | "PUT" | "POST" | "DELETE" | "PATCH";

/** A field that travels as a header. */
export interface HeaderField {
  /** As annotated, but for those that mean something here: "if-match" is "If-Match". */
  readonly name: string;
  readonly field: DescField;
}

/** Where the request's body goes: to one field, or to all fields that nothing else fills. */
export type Body =
  | { readonly kind: "field"; readonly field: DescField }
  | { readonly kind: "all"; readonly fields: readonly DescField[] };

/** When an operation ends, and what to call instead. */
export interface Deprecation {
  readonly deprecatedAt: Date;
  readonly sunsetAt: Date;
  /** Fills the path parameters of a request into the link to the successor. */
  readonly successor: ((request: object) => string) | undefined;
  /** The link as annotated, such as "/books?isbn={isbn}". Empty when there is none. */
  readonly successorTemplate: string;
}

/** One verb on one path, and the RPC behind it. */
export interface Operation {
  /**
   * Unique within the service, and in a document made so: the RPC's name, with another verb than the first binding's behind it,
   * and a number where several are alike. Where an Update has a mask, its PUT replaces and its PATCH updates.
   */
  readonly id: string;
  readonly service: DescService;
  readonly method: DescMethodUnary | DescMethodServerStreaming;
  readonly tag: string;
  readonly verb: Verb;
  /** With JSON names, such as "/shelves/{shelfId}". */
  readonly path: string;
  readonly segments: readonly Segment[];
  readonly params: readonly DescField[];
  readonly query: readonly DescField[];
  /** Fields of the request that come as headers, such as Idempotency-Key and If-Match. */
  readonly requestHeaders: readonly HeaderField[];
  readonly body: Body | undefined;
  /** Present on a PATCH: the field that is told which members the merge patch names. */
  readonly updateMask: DescField | undefined;
  /** Whether a PATCH may name no member at all. */
  readonly acceptsEmptyMask: boolean;
  /** Present when the RPC streams: the answer is a stream of events, and has no record and no status but 200. */
  readonly stream: Stream | undefined;
  /** The field of the answer that is the body; undefined when all of the answer is. */
  readonly response: DescField | undefined;
  /** What the answer shows: the message of that field, or the whole answer; undefined on lists and streams. */
  readonly record: DescMessage | undefined;
  /** Present on a list that answers for one record where it is asked for by one value of this parameter. */
  readonly idFilter: DescField | undefined;
  /** Fields of the answer's record that are sent as headers, such as ETag. Empty without a record, be it the only one listed. */
  readonly responseHeaders: readonly HeaderField[];
  /** Present on a list with pages: the parameter for the token, and the answer's field with the next one. */
  readonly paging: { readonly pageToken: DescField; readonly nextPageToken: DescField } | undefined;
  /** 200 unless annotated. With 204 the answer has no body. */
  readonly successStatus: number;
  /** Makes the path of a created record from the record. */
  readonly location: ((record: object) => string) | undefined;
  readonly deprecation: Deprecation | undefined;
  /** Reasons for failure that are particular to this operation. */
  readonly errors: readonly string[];
  /** What a caller must have been granted, such as "books:read"; empty when the contract does not say. */
  readonly scope: string;
}

const known = new WeakMap<DescService, readonly Operation[]>();

/**
 * The operations of a service, in the order of its contract. RPCs without an HTTP rule have none.
 *
 * @throws Error when an annotation asks for what can't be served.
 */
export function operationsOf(service: DescService): readonly Operation[] {
  const operations = known.get(service) ?? readOperations(service);
  known.set(service, operations);
  return operations;
}

function readOperations(service: DescService): readonly Operation[] {
  const operations = service.methods
    .filter((method) => hasOption(method, http))
    .flatMap((method) => {
      if (!isServed(method)) throw new Error(`${method}: an RPC whose requests stream can't have an HTTP rule`);
      try {
        return bindingsOf(getOption(method, http)).map((rule) => operationOf(service, method, rule));
      } catch (error) {
        throw new Error(`${method}: ${(error as Error).message}`, { cause: error });
      }
    });
  return withOwnIds(operations);
}

/** Of bindings with one verb the second has a 2 behind it, and so on. */
function withOwnIds(operations: readonly Operation[]): Operation[] {
  const taken = new Set(operations.map(({ id }) => id));
  return operations.map((operation, i) => {
    if (operations.findIndex(({ id }) => id === operation.id) === i) return operation;
    let count = 2;
    while (taken.has(operation.id + count)) count++;
    taken.add(operation.id + count);
    return { ...operation, id: operation.id + count };
  });
}

const isServed = (method: DescMethod): method is Operation["method"] =>
  method.methodKind === "unary" || method.methodKind === "server_streaming";

function bindingsOf(rule: HttpRule): HttpRule[] {
  if (rule.additionalBindings.some(({ additionalBindings }) => additionalBindings.length > 0))
    throw new Error("additional bindings can't have bindings of their own");
  return [rule, ...rule.additionalBindings];
}

function operationOf(service: DescService, method: Operation["method"], rule: HttpRule): Operation {
  const verb = verbOf(rule);
  const { input, output } = method;
  const annotated = getOption(method, operationOption);
  const segments = parseTemplate(rule.pattern.value as string, input);
  const params = segments.flatMap((segment) => ("field" in segment ? [segment.field] : []));
  ensureWhole(input, "request");
  const headers = headersIn(input.fields);
  const inHeaders = headers.map(({ field }) => field);
  const mask = input.fields.find(isUpdateMask);
  const taken = new Set([...params, ...inHeaders, mask]);
  const free = input.fields.filter((field) => !taken.has(field));
  const body = bodyOf(rule, verb, free);
  const updateMask = verb === "PATCH" ? patchMask(mask, body) : undefined;
  // A PUT without it changes all of its resource.
  if (mask && !updateMask && (verb !== "PUT" || body?.kind !== "field"))
    throw new Error(`only a PATCH fills ${mask.name}`);
  const query = body?.kind === "all" ? [] : free.filter((field) => field !== body?.field && !isOutputOnly(field));
  for (const field of query) if (!isQueryable(field)) throw new Error(`${field.name} does not fit into a query`);
  const response = rule.responseBody === "" ? undefined : named(rule.responseBody, output.fields, "response_body");
  const stream = method.methodKind === "server_streaming" ? streamOf(method, query) : undefined;
  const record = recordOf(response, stream ? undefined : output);
  const idFilter = annotated.idFilter ? named(annotated.idFilter, query, "id_filter") : undefined;
  if (idFilter && (verb !== "GET" || idFilter.fieldKind !== "list" || !listed(response)))
    throw new Error("id_filter needs a GET of a list of messages, and a repeated parameter");
  const successStatus = annotated.successStatus || 200;
  // 205 is about a form that is empty again.
  if (!/^2\d\d$/.test(`${successStatus}`) || successStatus === 205)
    throw new Error(`success_status can't be ${successStatus}`);
  if (stream && (verb !== "GET" || response || successStatus !== 200))
    throw new Error("a stream needs a GET, without response_body and another status");
  if (annotated.acceptsEmptyMask && !mask) throw new Error("accepts_empty_mask needs an update_mask in the request");
  if (annotated.location && !record) throw new Error("location needs an answer with one record");
  if (annotated.location && record) parseTemplate(annotated.location, record);
  for (const field of [...free, ...inHeaders]) ensureServed(field, true);
  const unclampable = free.find((field) => isClamped(field) && !(field.scalar && isInteger(field.scalar)));
  if (unclampable) throw new Error(`${unclampable.name} is clamped, which only an integer can be`);
  const wholes = stream ? stream.data.map(({ message }) => message) : response ? [] : [output];
  for (const whole of wholes) ensureWhole(whole, "answer");
  for (const field of response ? [response] : toldBy(stream, output)) ensureServed(field, false);
  return {
    id: idOf(method, verb, mask !== undefined),
    service,
    method,
    tag: getOption(service, tag) || service.name,
    verb,
    path: showTemplate(segments),
    segments,
    params,
    query,
    requestHeaders: headers.filter(({ field }) => !isOutputOnly(field)),
    body,
    updateMask,
    acceptsEmptyMask: annotated.acceptsEmptyMask,
    stream,
    response,
    record,
    idFilter,
    responseHeaders: headersIn((idFilter ? listed(response) : record)?.fields ?? []),
    paging: pagingOf(query, output.fields),
    successStatus,
    location: annotated.location && record ? linkTo(annotated.location, record) : undefined,
    deprecation: deprecationOf(annotated.deprecation, method),
    errors: annotated.errors,
    scope: getOption(method, scope),
  };
}

function idOf(method: DescMethod, verb: Verb, hasMask: boolean): string {
  const { localName } = method;
  const [, updated] = /^update([A-Z]\w*)$/.exec(localName) ?? [];
  if (hasMask && updated) return verb === "PUT" ? `replace${updated}` : localName;
  const isFirst = verb === verbOf(getOption(method, http));
  return isFirst ? localName : localName + verb.charAt(0) + verb.slice(1).toLowerCase();
}

/** Of a response of a stream no more is told than its data. */
const toldBy = (stream: Stream | undefined, output: DescMessage): readonly DescField[] =>
  stream?.data.flatMap(({ field }) => field ?? output.fields) ?? output.fields;

const recordOf = (response: DescField | undefined, whole: DescMessage | undefined): DescMessage | undefined =>
  response ? (response.fieldKind === "message" ? response.message : undefined) : whole;

const listed = (response: DescField | undefined): DescMessage | undefined =>
  response?.fieldKind === "list" ? response.message : undefined;

function verbOf({ pattern }: HttpRule): Verb {
  if (pattern.case === undefined || pattern.case === "custom") throw new Error("its HTTP rule needs one of the verbs");
  return pattern.case.toUpperCase() as Verb;
}

function bodyOf(rule: HttpRule, verb: Verb, free: readonly DescField[]): Body | undefined {
  if (rule.body === "") return undefined;
  if (verb === "GET" || verb === "DELETE") throw new Error(`${verb} can't have a body`);
  return rule.body === "*" ? { kind: "all", fields: free } : { kind: "field", field: named(rule.body, free, "body") };
}

// A FieldMask can't name parts of a nested value, so a merge patch that has to merge within one is not served.
function patchMask(mask: DescField | undefined, body: Body | undefined): DescField {
  if (!mask) throw new Error("PATCH needs a google.protobuf.FieldMask update_mask in the request");
  if (body?.kind !== "field" || body.field.fieldKind !== "message")
    throw new Error("PATCH needs a message as its body");
  if (body.field.oneof) throw new Error(`${body.field.name} is in a oneof, which PATCH can't fill`);
  const nested = body.field.message.fields.find(
    (field) =>
      field.fieldKind === "map" ||
      (field.fieldKind === "message" && field.message.typeName !== TimestampSchema.typeName),
  );
  if (nested) throw new Error(`PATCH can't merge within ${nested.name}`);
  return mask;
}

function pagingOf(query: readonly DescField[], output: readonly DescField[]): Operation["paging"] {
  const pageToken = query.find(({ name }) => name === "page_token");
  const nextPageToken = output.find(({ name }) => name === "next_page_token");
  return pageToken && nextPageToken ? { pageToken, nextPageToken } : undefined;
}

function deprecationOf(
  deprecation: { deprecatedAt: string; sunsetAt: string; successor: string } | undefined,
  { input }: DescMethod,
): Deprecation | undefined {
  if (!deprecation) return undefined;
  const [deprecatedAt, sunsetAt] = [new Date(deprecation.deprecatedAt), new Date(deprecation.sunsetAt)];
  if (!(deprecatedAt.getTime() <= sunsetAt.getTime()))
    throw new Error("it needs a sunset that is not before its deprecation");
  const successorTemplate = deprecation.successor;
  return {
    deprecatedAt,
    sunsetAt,
    successorTemplate,
    successor: successorTemplate ? linkTo(successorTemplate, input) : undefined,
  };
}

/** Names of header fields that mean something here, however a contract spells them. */
const STANDARD = new Map(
  ["ETag", "If-Match", "If-None-Match", "Idempotency-Key"].map((name) => [name.toLowerCase(), name]),
);

/** A name of RFC 9110 (5.1), of no header that says how the message itself is to be read. */
const IS_OWN =
  /^(?!(?:connection|content-(?:encoding|length|type)|keep-alive|trailer|transfer-encoding|upgrade)$)[\w!#$%&'*+.^`|~-]+$/i;

const headersIn = (fields: readonly DescField[]): HeaderField[] =>
  fields.flatMap((field) => {
    const name = headerOf(field);
    if (name === "") return [];
    if (field.fieldKind !== "scalar" || field.oneof) throw new Error(`${field.name} can't be a header`);
    if (!IS_OWN.test(name)) throw new Error(`${field.name} can't be the header "${name}"`);
    return [{ name: STANDARD.get(name.toLowerCase()) ?? name, field }];
  });

const isQueryable = ({ fieldKind, message }: DescField): boolean => fieldKind !== "map" && message === undefined;

function named(name: string, fields: readonly DescField[], option: string): DescField {
  const field = fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`${option} names "${name}", which is no free field`);
  return field;
}
