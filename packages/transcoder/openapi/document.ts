/** The OpenAPI 3.1 document, made from the same operations as the routes: what is on the wire, and nothing else. */
import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { type CodecOptions, createCodec } from "../contract/codec.ts";
import { commentsOf } from "../contract/comments.ts";
import { lastOf } from "../contract/field-path.ts";
import { headerOf } from "../contract/fields.ts";
import type { Operation } from "../contract/operation.ts";
import { listParameters, MOST_LISTED } from "../contract/query-parameters.ts";
import { shapeOf } from "../contract/shown-path.ts";
import { parseTemplate } from "../contract/template.ts";
import { operation as operationOption } from "../gen/transcoder/v1/annotations_pb.ts";
import { effectiveDates } from "../policy/deprecation.ts";
import type { TimeoutHeader } from "../request/input.ts";
import { commonHeaders } from "./common.ts";
import { errorBodies } from "./error-bodies.ts";
import { errorsOf, type Failure, failuresOf } from "./failures.ts";
import { groupBy } from "./group-by.ts";
import type { JsonObject } from "./json.ts";
import { commonParameters, parametersOf } from "./parameters.ts";
import { hasPlace, pathsOf, pathVariables, withOnePathEach } from "./paths.ts";
import { line, prose } from "./prose.ts";
import { referredOnly } from "./referred.ts";
import { requestBodyOf } from "./request-bodies.ts";
import { type Common, failureExamples, failureResponses, ownHeaders, responsesOf } from "./responses.ts";
import { createSchemas, type Schemas } from "./schemas.ts";
import type { Sources } from "./sources.ts";

/** What the document says about the whole interface. Options of the transcoder have the same defaults here. */
export interface About extends Omit<CodecOptions, "registry"> {
  readonly title: string;
  readonly version: string;
  readonly description?: string | undefined;
  /** By its identifier at spdx.org/licenses. */
  readonly license?: string | undefined;
  /** Who answers for it. */
  readonly contact?: string | undefined;
  /** Where callers reach it, such as "https://api.example". By default where they read the document. */
  readonly url?: string | undefined;
  /** In front of every path; empty for none. */
  readonly basePath: string;
  /** Longest time for a request. */
  readonly requestMs: number;
  /** By which a caller can ask for less; by default all that there are. */
  readonly timeoutHeaders?: readonly TimeoutHeader[] | undefined;
  /** Whether `updateMask` in a query is unknown; by default it says what a PUT or PATCH changes. */
  readonly maskFromBodyOnly?: boolean | undefined;
  /** Whether members and parameters that an operation does not know are ignored; by default they are errors. */
  readonly ignoreUnknown?: boolean | undefined;
  /** What stands before the operations adds this to all answers, such as a limit of rates. */
  readonly everywhere?:
    | {
        /** Codes of the catalogue that any request may be refused with. */
        readonly errors: readonly string[];
        /** Header objects by name. */
        readonly headers: Readonly<Record<string, JsonObject>>;
      }
    | undefined;
}

/** The comments of the contract by full name. */
type Texts = Readonly<Record<string, string>>;

/** Sources with all their texts. */
type Told = Sources & { readonly docs: Texts };

const NOTHING = { errors: [], headers: {} };

/** @throws Error when an operation names an error that the catalogue does not have. */
export function openApiDocument(given: Sources, about: About): JsonObject {
  const { docs: texts = commentsOf(given.files) } = given;
  const sources = {
    ...given,
    operations: withOnePathEach(withUniqueIds(given.operations)),
    docs: Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, prose(text)])),
  };
  const { operations, docs } = sources;
  const errors = errorsOf(sources);
  const bodies = errorBodies(errors);
  const schemas = createSchemas(sources, createCodec(about), Object.keys(bodies.schemas));
  const { title, version, description, license, contact, url = "", basePath, everywhere = NOTHING } = about;
  const common = {
    errorBodies: bodies,
    asksCallers: sources.security !== undefined,
    headers: Object.keys(everywhere.headers),
  };
  const headers = { ...commonHeaders(version, common.asksCallers), ...everywhere.headers };
  const parameters = commonParameters(about);
  const described = operations.map((operation) => ({
    operation,
    failures: failuresOf(operation, sources, errors, everywhere.errors),
    parameters: parametersOf(operation, schemas, parameters, about),
  }));
  const paths = pathsOf(
    described.map(({ operation, failures, parameters }) => ({
      operation,
      text: describe(operation, parameters, failures, sources, schemas, common),
    })),
  );
  return {
    openapi: "3.1.1",
    info: {
      title: line(title),
      version,
      description: description && prose(description),
      contact: contact === undefined ? undefined : { name: contact },
      license: license === undefined ? undefined : { name: license, identifier: license },
    },
    servers: [{ url: url + basePath || "/" }],
    tags: tagsOf(operations, docs),
    paths,
    components: referredOnly(
      {
        schemas: { ...schemas.components(), ...bodies.schemas },
        responses: failureResponses(described, common),
        parameters,
        examples: failureExamples(
          described.flatMap(({ failures }) => failures),
          bodies,
        ),
        headers: { ...headers, ...ownHeaders(operations, schemas, headers) },
        securitySchemes: sources.security,
      },
      paths,
    ),
  };
}

/** An `operationId` is unique in its document: where two services have an RPC of one name, theirs begin with the service. */
function withUniqueIds(operations: readonly Operation[]): Operation[] {
  const choices = operations.map(({ service: { name, typeName }, id }) => [id, `${name}_${id}`, `${typeName}.${id}`]);
  const all = groupBy(choices.flat(), (choice) => choice);
  return operations.map((operation, i) => {
    const id = choices[i]?.find((choice) => all.get(choice)?.length === 1) ?? operation.id;
    return { ...operation, id };
  });
}

function describe(
  operation: Operation,
  parameters: readonly JsonObject[],
  failures: readonly Failure[],
  sources: Told,
  schemas: Schemas,
  common: Common,
): JsonObject {
  const { operations } = sources;
  return {
    operationId: operation.id,
    tags: [line(operation.tag)],
    ...textOf(operation, sources),
    deprecated: operation.deprecation || operation.method.deprecated || operation.service.deprecated ? true : undefined,
    security: securityOf(operation, sources),
    parameters,
    requestBody: requestBodyOf(operation, sources, schemas),
    responses: responsesOf(operation, failures, {
      schemas,
      common,
      description: sources.docs[operation.method.output.typeName] ?? "Success.",
      links: linksOf(operation, operations),
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

function tagsOf(operations: readonly Operation[], docs: Texts): JsonObject[] {
  const services = groupBy(operations, ({ tag }) => tag);
  return [...services].map(([name, ofTag]) => ({
    name: line(name),
    description:
      [...new Set(ofTag.map(({ service }) => docs[service.typeName]).filter(Boolean))].join(" ") || undefined,
  }));
}
