/** What an operation answers: statuses, headers and bodies. */
import type { DescField } from "@bufbuild/protobuf";
import type { Operation } from "../contract/operations.ts";
import { errorBody } from "../errors/error-exit.ts";
import type { Reason } from "../errors/reasons.ts";
import { isConditional } from "../policy/conditional.ts";
import { JSON_TYPE, PROBLEM_TYPE } from "../policy/media.ts";
import { mayBeNull } from "../response/encode.ts";
import { eventContent } from "./events.ts";
import type { JsonObject } from "./json.ts";
import type { Schemas } from "./schemas.ts";
import { nullable } from "./values.ts";

const refer = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });
const headers = (...names: string[]): JsonObject =>
  Object.fromEntries(names.map((name) => [name, refer("headers", name)]));

const ALWAYS = ["X-Request-Id", "API-Version", "X-Content-Type-Options", "Cache-Control", "Vary"];

/** What holds for all responses. */
export interface Common {
  /** Whether there are no other errors than those of the catalogue. */
  readonly areAll: boolean;
  /** Whether callers are asked who they are. */
  readonly asksCallers: boolean;
  /** The names of headers that are on every answer, beside the transcoder's own. */
  readonly headers: readonly string[];
}

/** The responses of an operation by status. */
export function responsesOf(
  operation: Operation,
  failures: readonly [status: number, reasons: readonly Reason[]][],
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
      content: contentOf(operation, schemas),
      links,
    },
    ...(isConditional(operation) ? { 304: notModified(operation, common) } : {}),
    ...Object.fromEntries(failures.map(([status, reasons]) => [status, failure(operation, status, reasons, common)])),
  };
}

function successHeaders(operation: Operation): string[] {
  const isCreate = operation.requestHeaders.some(({ name }) => name === "Idempotency-Key");
  return [
    ...(operation.idFilter ? [] : operation.responseHeaders.map(({ name }) => name)),
    ...(operation.location ? ["Location"] : []),
    ...(isCreate ? ["Idempotent-Replayed"] : []),
    ...(operation.paging || operation.deprecation ? ["Link"] : []),
    ...deprecationHeaders(operation),
    ...(operation.stream ? ["X-Accel-Buffering"] : []),
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

const deprecationHeaders = ({ deprecation }: Operation): string[] => (deprecation ? ["Deprecation", "Sunset"] : []);

function contentOf(operation: Operation, schemas: Schemas): JsonObject | undefined {
  if (operation.stream) return eventContent(operation.stream, schemas);
  return operation.successStatus === 204 ? undefined : { [JSON_TYPE]: { schema: bodyOf(operation, schemas) } };
}

function bodyOf({ method, response }: Operation, schemas: Schemas): JsonObject {
  if (!response) return schemas.message(method.output, "output");
  // "ListBooks" lists "Books".
  if (response.fieldKind === "list") return schemas.list(listName(method.name, response), response);
  const schema =
    response.fieldKind === "message" ? schemas.message(response.message, "output") : schemas.field(response, "output");
  return mayBeNull(response) ? nullable(schema) : schema;
}

const listName = (method: string, { jsonName }: DescField): string =>
  /^List[A-Z]/.test(method) ? method.slice("List".length) : `${method}${jsonName}`;

const notModified = (operation: Operation, common: Common): JsonObject => ({
  description: "The caller holds this representation already.",
  headers: headers(
    ...ALWAYS,
    ...common.headers,
    "ETag",
    ...(operation.deprecation ? ["Link"] : []),
    ...deprecationHeaders(operation),
  ),
});

/** Failures that are the same for many operations stand among the components; see `commonFailures`. */
function failure(operation: Operation, status: number, reasons: readonly Reason[], common: Common): JsonObject {
  const more = [
    ...(status === 415 && operation.updateMask ? ["Accept-Patch"] : []),
    ...(operation.deprecation ? ["Link", ...deprecationHeaders(operation)] : []),
  ];
  return isCommon(status, more) ? refer("responses", nameOf(reasons)) : failureResponse(status, reasons, common, more);
}

/** What a request can be refused for differs from one operation to the next. */
const isCommon = (status: number, more: readonly string[]): boolean =>
  (status > 404 || status === 401 || status === 403) && status !== 409 && more.length === 0;

/** Such as "UnavailableOrOverloaded". */
const nameOf = (reasons: readonly Reason[]): string =>
  reasons
    .map(({ code }) => code.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase()))
    .join("Or");

/** The responses that `responsesOf` refers to. */
export const commonFailures = (
  all: readonly [status: number, reasons: readonly Reason[]][],
  common: Common,
): JsonObject =>
  Object.fromEntries(
    all
      .filter(([status]) => isCommon(status, []))
      .map(([status, reasons]) => [nameOf(reasons), failureResponse(status, reasons, common, [])])
      .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)),
  );

function failureResponse(
  status: number,
  reasons: readonly Reason[],
  common: Common,
  more: readonly string[],
): JsonObject {
  const content = (record: string, asProblem: boolean) => ({
    schema: {
      allOf: [refer("schemas", record)],
      type: "object",
      properties: {
        status: { type: "integer", const: status },
        code: { type: "string", [common.areAll ? "enum" : "examples"]: reasons.map(({ code }) => code) },
      },
    },
    examples: Object.fromEntries(reasons.map((reason) => [reason.code, { value: exampleOf(reason, asProblem) }])),
  });
  return {
    description: reasons.map(({ code, meaning }) => `- \`${code}\`: ${meaning}`).join("\n"),
    headers: headers(
      ...ALWAYS,
      ...common.headers,
      ...(status === 429 || status === 503 ? ["Retry-After"] : []),
      ...(common.asksCallers && (status === 401 || status === 403) ? ["WWW-Authenticate"] : []),
      ...more,
    ),
    content: { [JSON_TYPE]: content("Error", false), [PROBLEM_TYPE]: content("Problem", true) },
  };
}

/** As it is sent; real messages also say where. */
const exampleOf = ({ code, status, meaning }: Reason, asProblem: boolean): JsonObject =>
  JSON.parse(errorBody({ code, message: meaning, status }, asProblem).body);
