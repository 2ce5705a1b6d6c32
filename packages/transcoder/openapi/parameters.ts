/** What an operation takes besides its body. */
import { type DescField, ScalarType } from "@bufbuild/protobuf";
import type { Codec } from "../contract/codec.ts";
import { jsonPath, lastOf } from "../contract/field-path.ts";
import { isClamped } from "../contract/fields.ts";
import type { Operation } from "../contract/operation.ts";
import { listParameters } from "../contract/query-parameters.ts";
import { isConditional } from "../policy/conditional.ts";
import { LAST_EVENT_ID, TIMEOUT_HEADERS } from "../request/input.ts";
import { type JsonObject, refer } from "./json.ts";
import { type PathVariable, pathVariables } from "./paths.ts";
import type { Schemas } from "./schemas.ts";
import type { About } from "./sources.ts";
import { lastEventId } from "./streams.ts";
import { scalarSchema } from "./values.ts";

/** The parameters of an operation. Of `common` those that it has are referred to. */
export function parametersOf(
  operation: Operation,
  schemas: Schemas,
  common: ReturnType<typeof commonParameters>,
  { maskFromBodyOnly }: Pick<About, "maskFromBodyOnly">,
): JsonObject[] {
  const resume = operation.stream?.resume;
  const inPath = pathVariables(operation).map((variable) => inPathOf(variable, operation, schemas));
  const inQuery = listParameters(operation).paths.map((path) => {
    const field = lastOf(path);
    const described = parameter(jsonPath(path), "query", field, schemas, styleOf(field));
    if (field === operation.paging?.pageToken) return { ...described, description: NEXT_PAGE };
    // A message need not be there, so nothing in it has to be given.
    const optional = path.length > 1 ? { ...described, required: undefined } : described;
    return field === resume || schemas.codec.isLenient
      ? optional
      : { ...optional, schema: notEmpty(described.schema as JsonObject) };
  });
  const { maskParameter } = operation;
  const inMask = maskParameter && !maskFromBodyOnly ? [maskOf(operation, maskParameter, schemas)] : [];
  const inHeader = operation.requestHeaders.map(({ name, field }) => {
    const described = parameter(name, "header", field, schemas);
    return { ...described, schema: { ...(described.schema as JsonObject), examples: CONDITION_EXAMPLES[name] } };
  });
  const own = operation.requestHeaders.map(({ name }) => name.toLowerCase());
  const inCommon = Object.entries(common).filter(
    ([, { name }]) => !own.includes(name.toLowerCase()) && (!(name in CONDITION_EXAMPLES) || isConditional(operation)),
  );
  return [
    ...inPath,
    ...inQuery,
    ...inMask,
    ...inHeader,
    ...(resume ? [lastEventId(resume, parameter(LAST_EVENT_ID, "header", resume, schemas))] : []),
    ...inCommon.map(([called]) => refer("parameters", called)),
  ];
}

/** What a PUT or PATCH changes, by a caller's own word. */
function maskOf({ updateMask }: Operation, field: DescField, schemas: Schemas): JsonObject {
  const { description, ...described } = parameter(field.jsonName, "query", field, schemas, { required: undefined });
  const otherwise = `Without it ${updateMask ? "what the body names" : "all"} is changed.`;
  return { ...described, description: [description, otherwise].filter(Boolean).join(" ") };
}

/** A list comes as many parameters, and so does a map, with the key in brackets: `labels[color]=red`. */
function styleOf({ fieldKind }: DescField): JsonObject {
  if (fieldKind === "map") return { style: "deepObject", explode: true };
  return fieldKind === "list" ? { style: "form", explode: true } : {};
}

function inPathOf({ name, variable, isWhole }: PathVariable, { route }: Operation, schemas: Schemas): JsonObject {
  if (!variable || !isWhole) {
    const what = variable ? `Part of \`${jsonPath(variable.field)}\` in` : "Any text: part of";
    const schema = { type: "string", minLength: 1 };
    return { name, in: "path", required: true, schema, description: `${what} the path \`${route}\`.` };
  }
  const described = parameter(name, "path", lastOf(variable.field), schemas);
  if (!variable.isMulti) return described;
  const words = [described.description, "It can have slashes, which stay as they are."];
  return { ...described, description: words.filter(Boolean).join(" ") };
}

/** By the headers that make a request conditional. */
const CONDITION_EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  "If-Match": ["*", '"2"'],
  "If-None-Match": ['"2"'],
};

const NEXT_PAGE =
  'Where to go on: the header `Link` (rel="next") of the page before is the whole address with this parameter in it. ' +
  "A token belongs to the filters and the order that it was made for. Empty means the first page.";

function parameter(
  name: string,
  location: "path" | "query" | "header",
  field: DescField,
  schemas: Schemas,
  more: JsonObject = {},
): JsonObject {
  const { description, ...schema } = schemas.field(field, "parameter");
  const commas = field.scalar === ScalarType.STRING || field.message ? "" : ", also separated by commas";
  const repeatable = field.fieldKind === "list" ? ` Repeatable${commas}.` : "";
  return {
    name,
    in: location,
    required: location === "path" || schemas.isAsked(field) ? true : undefined,
    description: description === undefined ? undefined : `${description}${repeatable}`,
    schema: isClamped(field) ? unlimited(schema, field, schemas.codec) : schema,
    ...more,
  };
}

/** Without a value a parameter of the query is an error, but in proto3 JSON, where a text may be empty. */
const notEmpty = (schema: JsonObject): JsonObject =>
  schema.type === "array"
    ? { ...schema, items: notEmpty(schema.items as JsonObject) }
    : schema.type === "string" && schema.enum === undefined
      ? { minLength: 1, ...schema }
      : schema;

/** A number beyond the type's range is read as the nearest within it, so only rules limit it. */
function unlimited(
  { format: _, minimum, maximum, ...schema }: JsonObject,
  { scalar }: DescField,
  codec: Codec,
): JsonObject {
  const type = scalar === undefined ? {} : scalarSchema(scalar, codec);
  return {
    ...schema,
    minimum: minimum === type.minimum ? undefined : minimum,
    maximum: maximum === type.maximum ? undefined : maximum,
  };
}

const ENTITY_TAGS =
  '^[ \\t]*(\\*|(,[ \\t]*)*(W/)?"[!#-~\\x80-\\xFF]*"([ \\t]*,[ \\t]*((W/)?"[!#-~\\x80-\\xFF]*")?)*)[ \\t]*$';

/** Less is taken too, but tools that make up values would see nothing but timeouts. */
const A_SECOND_OR_MORE = "^0*[1-9]\\d*(\\.\\d+)?$";

const header = (name: string, description: string, schema: JsonObject) => ({
  name,
  in: "header",
  description,
  schema: { type: "string", ...schema },
});

/**
 * Headers that many operations take, and none has a field for, by what the document calls them. `requestMs` is the longest time
 * for a request, `timeoutHeaders` ask for less; without `ignoreUnknown` everything unknown is an error anyway.
 */
export const commonParameters = ({
  requestMs,
  timeoutHeaders = TIMEOUT_HEADERS,
  ignoreUnknown,
}: Pick<About, "requestMs" | "timeoutHeaders" | "ignoreUnknown">): Readonly<
  Record<string, ReturnType<typeof header>>
> => ({
  IfMatch: header(
    "If-Match",
    "Entity tags of the record that is asked for, or `*`. When its own is not among them, the answer is 412 (RFC 9110, " +
      "13.1.1).",
    { pattern: ENTITY_TAGS, examples: CONDITION_EXAMPLES["If-Match"] },
  ),
  IfNoneMatch: header(
    "If-None-Match",
    "Entity tags that the caller holds, or `*`. When the record's is among them, the answer is 304 (RFC 9110, 13.1.2).",
    { pattern: ENTITY_TAGS, examples: CONDITION_EXAMPLES["If-None-Match"] },
  ),
  ...(ignoreUnknown && {
    Prefer: header(
      "Prefer",
      "With `handling=strict` (RFC 7240) a member or query parameter that the operation does not know is an error; " +
        "otherwise it is ignored. Members that only its answer has, such as `id`, are known, and ignored either way.",
      { examples: ["handling=strict"] },
    ),
  }),
  ...(timeoutHeaders.includes("X-Server-Timeout") && {
    ServerTimeout: header(
      "X-Server-Timeout",
      "Seconds that the caller gives the request, or a stream until its answer begins: a decimal number, 1 or more. More than " +
        `${requestMs / 1000} is read as that. Less than 1 is taken too, and may be over before there is an answer.`,
      { pattern: A_SECOND_OR_MORE, examples: ["2.5"] },
    ),
  }),
  ...(timeoutHeaders.includes("Grpc-Timeout") && {
    GrpcTimeout: header(
      "Grpc-Timeout",
      "The same as gRPC says it: up to eight digits and a unit, H, M or S for hours, minutes and seconds, m, u or n for " +
        "thousandths, millionths and billionths of a second.",
      { pattern: "^0{0,6}[1-9]\\d{0,6}[HMS]$", examples: ["2S"] },
    ),
  }),
  RequestId: header(
    "X-Request-Id",
    "The caller's identifier for the request: 1 to 128 letters, digits and `._:/+=-`. The answer and the logs repeat " +
      "it; anything else, or nothing, is replaced.",
    {},
  ),
});
