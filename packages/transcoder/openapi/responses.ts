/** What operations answer: statuses, headers and bodies. */
import type { DescField } from "@bufbuild/protobuf";
import { answersBytes, type Operation, streamsAnswers } from "../contract/operation.ts";
import { isConditional } from "../policy/conditional.ts";
import { JSON_TYPE } from "../policy/media.ts";
import { REQUEST_ID_PATTERN } from "../request/request-id.ts";
import { mayBeNull } from "../response/encode.ts";
import { type ErrorBodies, EXAMPLE_ID, type Failure } from "./errors.ts";
import { BYTES, type JsonObject, refer } from "./json.ts";
import type { Schemas } from "./schemas.ts";
import { eventContent, messageContent } from "./streams.ts";
import { nullable } from "./values.ts";

const headers = (...names: string[]): JsonObject =>
  Object.fromEntries(names.map((name) => [name, refer("headers", name)]));

/** Those that the transcoder itself sets on every answer. */
export const ALWAYS = ["X-Request-Id", "API-Version", "X-Content-Type-Options", "Cache-Control", "Vary"];

/** An operation with the errors that it can answer with. */
export interface Failing {
  readonly operation: Operation;
  readonly failures: readonly Failure[];
}

/** What holds for all responses. */
export interface Common {
  readonly errorBodies: ErrorBodies;
  /** Whether callers are asked who they are. */
  readonly asksCallers: boolean;
  /** The names of headers that are on every answer. */
  readonly headers: readonly string[];
}

/** The responses of an operation by status. */
export function responsesOf(
  operation: Operation,
  failures: readonly Failure[],
  schemas: Schemas,
  common: Common,
  told: { readonly description: string; readonly links: JsonObject | undefined },
): JsonObject {
  return {
    [operation.successStatus]: {
      description: told.description,
      headers: {
        ...headers(...common.headers, ...successHeaders(operation)),
        ...listedHeaders(operation, schemas),
      },
      content: contentOf(operation, schemas, common),
      links: told.links,
    },
    ...(isConditional(operation) && {
      304: {
        description: "The caller holds this representation already.",
        headers: headers(...common.headers, "ETag", ...additionsOf(operation, 304).headers),
      },
    }),
    ...Object.fromEntries(
      failures.map(({ status, name }) => [status, refer("responses", name + additionsOf(operation, status).suffix)]),
    ),
  };
}

const takesKey = ({ requestHeaders }: Operation): boolean =>
  requestHeaders.some(({ name }) => name === "Idempotency-Key");

function successHeaders(operation: Operation): string[] {
  return [
    ...(operation.idFilter ? [] : operation.responseHeaders.map(({ name }) => name)),
    ...(operation.location ? ["Location"] : []),
    ...(takesKey(operation) ? ["Idempotent-Replayed"] : []),
    ...(operation.paging || operation.deprecation ? ["Link"] : []),
    ...(operation.deprecation ? ["Deprecation", "Sunset"] : []),
    ...(streamsAnswers(operation) ? ["X-Accel-Buffering"] : []),
  ];
}

/** Of a list that is answered with one record where that is asked for by its id. */
const listedHeaders = ({ idFilter, responseHeaders }: Operation, schemas: Schemas): JsonObject =>
  Object.fromEntries(
    (idFilter ? responseHeaders : []).map(({ name, field }) => {
      const { description, schema } = ownHeader(field, schemas);
      return [name, { description: `With one \`${idFilter?.jsonName}\` and no other filter: ${description}`, schema }];
    }),
  );

/** Headers that only the contract knows, as it describes their fields. */
export const ownHeaders = (operations: readonly Operation[], schemas: Schemas, known: JsonObject): JsonObject =>
  Object.fromEntries(
    operations
      .flatMap(({ responseHeaders }) => responseHeaders)
      .filter(({ name }) => !(name in known))
      .map(({ name, field }) => [name, ownHeader(field, schemas)]),
  );

function ownHeader(field: DescField, schemas: Schemas): JsonObject {
  const { description, ...schema } = schemas.field(field, "output");
  return { description, schema };
}

function contentOf(operation: Operation, schemas: Schemas, { errorBodies }: Common): JsonObject | undefined {
  if (operation.successStatus !== 204 && answersBytes(operation)) return BYTES;
  if (operation.stream) return eventContent(operation.stream, schemas, errorBodies.inStream);
  if (streamsAnswers(operation)) return messageContent(bodyOf(operation, schemas), errorBodies.inStream);
  return operation.successStatus === 204 ? undefined : { [JSON_TYPE]: { schema: bodyOf(operation, schemas) } };
}

function bodyOf({ method, response }: Operation, schemas: Schemas): JsonObject {
  if (!response) return schemas.message(method.output, "output");
  // "ListBooks" lists "Books".
  if (response.fieldKind === "list") return schemas.list(listName(method.name, response), response);
  const schema =
    response.fieldKind === "message" ? schemas.message(response.message, "output") : schemas.field(response, "output");
  return mayBeNull(response, schemas.codec) ? nullable(schema) : schema;
}

const listName = (method: string, { jsonName }: DescField): string =>
  /^List[A-Z]/.test(method) ? method.slice("List".length) : `${method}${jsonName}`;

/** What only some operations add to an answer of that status: headers, and what its component is called for them. */
function additionsOf(operation: Operation, status: number): { headers: string[]; suffix: string } {
  const { updateMask, deprecation } = operation;
  const isType = status === 415;
  // What depends on stored records is bound to the key as well.
  const isReplayable = (status === 404 || status === 409) && takesKey(operation);
  const takesPatch = isType && updateMask !== undefined;
  const accepts = takesPatch ? ["Accept-Patch"] : ["Accept", "Accept-Post"];
  return {
    headers: [
      ...(isType ? [...accepts, "Accept-Encoding"] : []),
      ...(isReplayable ? ["Idempotent-Replayed"] : []),
      ...(deprecation ? ["Link", "Deprecation", "Sunset"] : []),
    ],
    suffix:
      (takesPatch ? "OfPatch" : "") + (isReplayable ? "WhenCreating" : "") + (deprecation ? "WhenDeprecated" : ""),
  };
}

/** The responses that `responsesOf` refers to. */
export const failureResponses = (operations: readonly Failing[], common: Common): JsonObject =>
  Object.fromEntries(
    operations
      .flatMap(({ operation, failures }) =>
        failures.map((failure): [string, JsonObject] => {
          const { headers, suffix } = additionsOf(operation, failure.status);
          return [failure.name + suffix, failureResponse(failure, common, headers)];
        }),
      )
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

function failureResponse({ status, reasons }: Failure, common: Common, more: readonly string[]): JsonObject {
  return {
    description: reasons.map(({ code, meaning }) => `- \`${code}\`: ${meaning}`).join("\n"),
    headers: headers(
      ...common.headers,
      ...(status === 429 || status === 503 ? ["Retry-After"] : []),
      ...(common.asksCallers && (status === 401 || status === 403) ? ["WWW-Authenticate"] : []),
      ...more,
    ),
    content: common.errorBodies.contentOf(status, reasons),
  };
}

/** The headers of answers. Required ones are on every answer that lists them. Mocks send the examples. */
export const commonHeaders = (apiVersion: string, asksCallers: boolean): JsonObject => ({
  "X-Request-Id": required(
    "The request's identifier: the caller's if it sent one that can stand in a log, else the id of its trace.",
    { pattern: REQUEST_ID_PATTERN },
    EXAMPLE_ID,
  ),
  "API-Version": required("The version of this interface.", { const: apiVersion }),
  "X-Content-Type-Options": required("The answer is what its Content-Type says, whatever it looks like (Fetch, 3.6).", {
    const: "nosniff",
  }),
  "Cache-Control": required(
    "`no-cache` on what was read: it may be kept, but not shown again without asking, best with `If-None-Match`. " +
      "`no-store` on answers to writes, on events and on errors (RFC 9111, 5.2.2).",
    { enum: ["no-cache", "no-store"] },
  ),
  Vary: required(
    "What in the request the answer depends on, beside its address (RFC 9110, 12.5.5).",
    { pattern: "^(Origin, )?Accept$" },
    "Accept",
  ),
  ETag: required(
    "The record's revision, a strong entity tag. It changes if and only if the record does.",
    { pattern: '^"[!#-~]+"$' },
    '"1"',
  ),
  Location: required("Where the record that was created is found.", { format: "uri-reference" }),
  Link: header(
    'Links (RFC 8288): `rel="next"` is the next page of a list, if there is one; `rel="successor-version"` is what to ' +
      "call instead of a deprecated operation.",
  ),
  Deprecation: header("Since when the operation is deprecated (RFC 9745).", { pattern: "^@-?\\d+$" }, "@1793491200"),
  Sunset: header(
    "From when on the operation may be gone (RFC 8594).",
    { pattern: " GMT$" },
    "Fri, 31 Dec 2027 23:59:59 GMT",
  ),
  "Idempotent-Replayed": header("`true` when this is the first answer to the same key, sent again.", { const: "true" }),
  "X-Accel-Buffering": required("Asks proxies, such as nginx, to pass each event on as it comes.", { const: "no" }),
  "Retry-After": required(
    "Seconds to wait before the request is sent again (RFC 9110, 10.2.3).",
    { type: "integer", minimum: 0 },
    1,
  ),
  ...(asksCallers && {
    "WWW-Authenticate": header("How to show who you are, and the scope that is missing (RFC 6750, 3).", {
      pattern: "^Bearer realm=",
    }),
  }),
  Accept: header("The media types that PUT takes, where another was sent (RFC 9110, 12.5.1)."),
  "Accept-Post": header("The same for POST (Linked Data Platform, 7.1)."),
  "Accept-Patch": header("The same for PATCH (RFC 5789)."),
  "Accept-Encoding": header("The codings that a body may have, where another was sent (RFC 9110, 12.5.3).", {
    const: "identity",
  }),
});

const headerOf =
  (required?: boolean) =>
  (description: string, rules: JsonObject = {}, example?: string | number): JsonObject => ({
    description,
    required,
    schema: { type: "string", ...rules },
    example,
  });
const required = headerOf(true);
const header = headerOf();
