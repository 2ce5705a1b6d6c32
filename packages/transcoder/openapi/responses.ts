/** What an operation answers: statuses, headers and bodies. */
import type { DescField } from "@bufbuild/protobuf";
import { answersBytes, type Operation, streamsAnswers } from "../contract/operation.ts";
import { isConditional } from "../policy/conditional.ts";
import { JSON_TYPE } from "../policy/media.ts";
import { mayBeNull } from "../response/encode.ts";
import type { ErrorBodies } from "./error-bodies.ts";
import { eventContent } from "./events.ts";
import type { Failure } from "./failures.ts";
import { BYTES, type JsonObject } from "./json.ts";
import { messageContent } from "./message-streams.ts";
import type { Schemas } from "./schemas.ts";
import { nullable } from "./values.ts";

const refer = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });
const headers = (...names: string[]): JsonObject =>
  Object.fromEntries(names.map((name) => [name, refer("headers", name)]));

const ALWAYS = ["X-Request-Id", "API-Version", "X-Content-Type-Options", "Cache-Control", "Vary"];

/** What holds for all responses. */
export interface Common {
  readonly errorBodies: ErrorBodies;
  /** Whether callers are asked who they are. */
  readonly asksCallers: boolean;
  /** The names of headers that are on every answer, beside the transcoder's own. */
  readonly headers: readonly string[];
}

/** The responses of an operation by status. */
export function responsesOf(
  operation: Operation,
  failures: readonly Failure[],
  {
    schemas,
    common,
    description,
    links,
  }: { schemas: Schemas; common: Common; description: string; links: JsonObject | undefined },
): JsonObject {
  return {
    [operation.successStatus]: {
      description,
      headers: {
        ...headers(...ALWAYS, ...common.headers, ...successHeaders(operation)),
        ...listedHeaders(operation, schemas),
      },
      content: contentOf(operation, schemas, common),
      links,
    },
    ...(isConditional(operation) ? { 304: notModified(operation, common) } : {}),
    ...Object.fromEntries(failures.map((failure) => [failure.status, refer("responses", nameIn(operation, failure))])),
  };
}

const takesKey = ({ requestHeaders }: Pick<Operation, "requestHeaders">): boolean =>
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

const notModified = (operation: Operation, common: Common): JsonObject => ({
  description: "The caller holds this representation already.",
  headers: headers(...ALWAYS, ...common.headers, "ETag", ...additionsOf(operation, 304).headers),
});

/** What only some operations add to an answer of that status: headers, and what its component is called for them. */
function additionsOf(
  { updateMask, deprecation, requestHeaders }: Operation,
  status: number,
): { headers: string[]; suffix: string } {
  const isType = status === 415;
  // What depends on stored records is bound to the key as well.
  const isReplayable = (status === 404 || status === 409) && takesKey({ requestHeaders });
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

const nameIn = (operation: Operation, { status, name }: Failure): string =>
  name + additionsOf(operation, status).suffix;

/** The responses that `responsesOf` refers to. */
export const failureResponses = (
  operations: readonly { readonly operation: Operation; readonly failures: readonly Failure[] }[],
  common: Common,
): JsonObject =>
  Object.fromEntries(
    operations
      .flatMap(({ operation, failures }) =>
        failures.map((failure): [string, JsonObject] => [
          nameIn(operation, failure),
          failureResponse(failure, common, additionsOf(operation, failure.status).headers),
        ]),
      )
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

function failureResponse({ status, reasons }: Failure, common: Common, more: readonly string[]): JsonObject {
  return {
    description: reasons.map(({ code, meaning }) => `- \`${code}\`: ${meaning}`).join("\n"),
    headers: headers(
      ...ALWAYS,
      ...common.headers,
      ...(status === 429 || status === 503 ? ["Retry-After"] : []),
      ...(common.asksCallers && (status === 401 || status === 403) ? ["WWW-Authenticate"] : []),
      ...more,
    ),
    content: common.errorBodies.contentOf(status, reasons),
  };
}

/** The examples that the responses refer to. */
export const failureExamples = (failures: readonly Failure[], { exampleOf }: ErrorBodies): JsonObject =>
  exampleOf
    ? Object.fromEntries(
        failures.flatMap(({ reasons }) => reasons).map((reason) => [reason.code, { value: exampleOf(reason) }]),
      )
    : {};
