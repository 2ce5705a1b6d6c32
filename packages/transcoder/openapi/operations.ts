/** What a document says of an operation besides its parameters: its texts, its body, its answers, and where these lead. */
import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { lastOf } from "../contract/field-path.ts";
import { headerOf } from "../contract/fields.ts";
import { type Operation, patchedField, streamsRequests, takesBytes } from "../contract/operation.ts";
import { listParameters, MOST_LISTED } from "../contract/query-parameters.ts";
import { shapeOf } from "../contract/shown-path.ts";
import { parseTemplate } from "../contract/template.ts";
import { operation as operationOption } from "../gen/transcoder/v1/annotations_pb.ts";
import { effectiveDates } from "../policy/deprecation.ts";
import { bodyTypesOf } from "../policy/media.ts";
import { BYTES, type Json, type JsonObject, line, prose } from "./json.ts";
import { hasPlace, pathVariables } from "./paths.ts";
import { type Common, type Failing, responsesOf } from "./responses.ts";
import type { Schemas } from "./schemas.ts";
import type { Sources, Told } from "./sources.ts";
import { requestContent } from "./streams.ts";

/** An operation with what was made of it. */
export interface Described extends Failing {
  readonly parameters: readonly JsonObject[];
}

export function describe(one: Described, sources: Told, schemas: Schemas, common: Common): JsonObject {
  const { operation, parameters, failures } = one;
  return {
    operationId: operation.id,
    tags: [line(operation.tag)],
    ...textOf(operation, sources),
    deprecated: operation.deprecation || operation.method.deprecated || operation.service.deprecated ? true : undefined,
    security: securityOf(operation, sources),
    parameters,
    requestBody: requestBodyOf(operation, sources, schemas),
    responses: responsesOf(operation, failures, schemas, common, {
      description: sources.docs[operation.method.output.typeName] ?? "Success.",
      links: linksOf(operation, sources.operations),
    }),
  };
}

/** Any of the credentials, and with each of them the scope. */
const securityOf = ({ scope }: Operation, { security }: Sources): JsonObject[] | undefined =>
  security && Object.keys(security).map((name) => ({ [name]: scope === "" ? [] : [scope] }));

function textOf(operation: Operation, { docs, deprecation }: Told): JsonObject {
  const text = docs[`${operation.service.typeName}.${operation.method.name}`] ?? "";
  const [, summary = text, rest = ""] = /^(.*?)\.(?:\s+(.*))?$/s.exec(text) ?? [];
  const paragraphs = [rest, patching(operation), unlisted(operation), prose(ending(operation, deprecation))];
  return {
    summary: line(summary) || undefined,
    description: paragraphs.filter((paragraph) => paragraph !== "").join("\n\n") || undefined,
  };
}

const unlisted = (operation: Operation): string =>
  listParameters(operation).isCut
    ? `Only the parameters of the request's first ${MOST_LISTED} fields are listed here; those of the others are taken as well.`
    : "";

function patching({ updateMask, acceptsEmptyMask }: Operation): string {
  if (!updateMask) return "";
  const least = acceptsEmptyMask ? "" : " It has to name at least one.";
  return `The body is a merge patch: it changes the members that it names, and no others.${least}`;
}

function ending(operation: Operation, policy: Sources["deprecation"]): string {
  const { deprecation, method } = operation;
  if (!deprecation) return "";
  const { deprecatedAt, sunsetAt } = effectiveDates(deprecation, policy);
  const shown = new Map(method.input.fields.map(({ name, jsonName }) => [name, jsonName]));
  // The path may go by the names of another operation there.
  for (const { name, variable, isWhole } of pathVariables(operation))
    if (variable && isWhole) shown.set(lastOf(variable.field).name, name);
  const successor = deprecation.successorTemplate.replaceAll(/\{(\w+)\}/g, (_, name) => `{${shown.get(name)}}`);
  return [
    `Deprecated since ${moment(deprecatedAt)}, with its sunset on ${moment(sunsetAt)}.`,
    policy.goneAfterSunset ? "From then on the answer is 410." : "It may be gone from then on.",
    ...(successor === "" ? [] : [`Use \`${successor}\` instead.`]),
  ].join(" ");
}

const moment = (date: Date): string => date.toISOString().replace(".000Z", "Z");

/**
 * From a created record to every operation that takes its identifier: at its path and below, or elsewhere by a variable that
 * has the record's name in it, as `book_id` has that of a Book. `id` may be anybody's.
 */
function linksOf(operation: Operation, operations: readonly Operation[]): JsonObject | undefined {
  const template = getOption(operation.method, operationOption).location;
  const { record, successStatus } = operation;
  if (!template || !record || successStatus === 204) return undefined;
  const location = parseTemplate(template, record);
  const sources = location.variables.map(({ field }) => lastOf(field));
  const isTold = location.variables.every(({ field, isMulti }) => !isMulti && headerOf(lastOf(field)) === "");
  if (sources.length === 0 || !isTold) return undefined;
  const name = qualified(record, sources[0] as DescField);
  const targets = operations
    .filter(hasPlace)
    .filter(
      ({ template: { segments, variables }, params }) =>
        params.length === sources.length &&
        variables.every(({ isMulti }) => !isMulti) &&
        (shapeOf({ segments: segments.slice(0, location.segments.length), customVerb: "" }) === shapeOf(location) ||
          (params.length === 1 && params[0] && lastOf(params[0]).name === name)),
    );
  const from = sources.map(({ jsonName }) => `$response.body#/${jsonName.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  return Object.fromEntries(
    targets.map((target) => [
      target.id,
      {
        operationId: target.id,
        parameters: Object.fromEntries(
          pathVariables(target)
            .filter(({ variable }) => variable)
            .map(({ name }, i) => [name, from[i]]),
        ),
      },
    ]),
  );
}

/** What others call a field of a record: `book_id`, be it `id` or `book_id` in the Book. */
function qualified(record: DescMessage, { name }: DescField): string {
  const owner = `${record.name.replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, "_").toLowerCase()}_`;
  return name.startsWith(owner) ? name : owner + name;
}

type Body = NonNullable<Operation["body"]>;

function requestBodyOf(
  operation: Operation,
  { examples, patchExamples }: Pick<Sources, "examples" | "patchExamples">,
  schemas: Schemas,
): JsonObject | undefined {
  const { body, updateMask, method } = operation;
  if (!body) return undefined;
  if (takesBytes(operation)) return { content: BYTES };
  const schema = bodySchema(operation, body, schemas);
  if (streamsRequests(operation)) return { required: true, content: requestContent(schema) };
  const example = exampleOf(body, method.input.typeName, updateMask ? patchExamples : examples);
  const { types } = bodyTypesOf(operation, false);
  // In proto3 JSON a body that may be empty need not be there.
  const mayBeEmpty = body.kind === "all" && !updateMask && schemas.codec.isLenient && schema.required === undefined;
  return {
    required: mayBeEmpty ? undefined : true,
    content: Object.fromEntries(types.map((type) => [type, { schema, example }])),
  };
}

function bodySchema({ method: { input }, updateMask }: Operation, body: Body, schemas: Schemas): JsonObject {
  const patched = updateMask && patchedField(body);
  if (body.kind === "all") {
    if (patched) return schemas.wholePatch(input, body.fields, patched, updateMask);
    return hasCustomJsonRepresentation(input) ? schemas.message(input, "input") : schemas.object(body.fields);
  }
  if (patched) return schemas.mergePatch(patched.message);
  const { field } = body;
  return field.fieldKind === "message" ? schemas.message(field.message, "input") : schemas.field(field, "input");
}

/** The first example of the request, as much of it as is the body; else that of the body's message. */
function exampleOf(body: Body, request: string, examples: Sources["examples"] = {}): Json | undefined {
  const whole = examples[request]?.[0] as JsonObject | undefined;
  if (body.kind === "all") {
    const members = body.fields.map(({ jsonName }) => [jsonName, whole?.[jsonName]] as const);
    return whole && Object.fromEntries(members);
  }
  const { jsonName, fieldKind, message } = body.field;
  return whole?.[jsonName] ?? (fieldKind === "message" ? examples[message.typeName]?.[0] : undefined);
}
