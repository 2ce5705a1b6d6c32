/** From one rule of google.api.http on an RPC to an operation. */
import { METHODS } from "node:http";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { HttpRule } from "../gen/google/api/http_pb.ts";
import { operation as operationOption, scope, tag } from "../gen/transcoder/v1/annotations_pb.ts";
import { isInteger } from "../validation/common-rules.ts";
import { headersIn, isClamped, isOutputOnly, isUpdateMask } from "./fields.ts";
import {
  answersBytes,
  type Body,
  type Deprecation,
  isUpdate,
  type Operation,
  patchedField,
  streamsAnswers,
} from "./operation.ts";
import { shownPath, wildcardNames } from "./shown-path.ts";
import { streamOf } from "./stream.ts";
import { linkTo, parseTemplate } from "./template.ts";

/** @throws Error when the rule, or an annotation of the RPC, asks for what can't be served */
export function operationOf(service: DescService, method: Operation["method"], rule: HttpRule): Operation {
  const verb = verbOf(rule);
  const { input, output } = method;
  const annotated = getOption(method, operationOption);
  const route = pathOf(rule);
  const template = parseTemplate(route, input);
  const params = template.variables.map(({ field }) => field);
  const headers = headersIn(input.fields);
  const inHeaders = headers.map(({ field }) => field);
  const mask = input.fields.find(isUpdateMask);
  const inPath = params.flatMap(([field, ...within]) => (within.length === 0 ? [field] : []));
  const taken = new Set([...inPath, ...inHeaders]);
  const free = input.fields.filter((field) => !taken.has(field));
  const body = bodyOf(rule, free);
  const updateMask = verb === "PATCH" && patchedField(body) ? mask : undefined;
  const maskParameter = isUpdate(verb, body) ? mask : undefined;
  const query =
    body?.kind === "all"
      ? []
      : free.filter((field) => field !== body?.field && field !== maskParameter && !isOutputOnly(field));
  const response = rule.responseBody === "" ? undefined : named(rule.responseBody, output.fields, "response_body");
  const stream = streamOf(method, query);
  const isStreamed = streamsAnswers({ method });
  const isBytes = answersBytes({ method, response });
  const record = isStreamed || isBytes ? undefined : recordOf(response, output);
  const idFilter = annotated.idFilter ? named(annotated.idFilter, query, "id_filter") : undefined;
  if (idFilter && (verb !== "GET" || idFilter.fieldKind !== "list" || !listed(response)))
    throw new Error("id_filter needs a GET of a list of messages, and a repeated parameter");
  const successStatus = annotated.successStatus || 200;
  // 205 is about a form that is empty again.
  if (!/^2\d\d$/.test(`${successStatus}`) || successStatus === 205)
    throw new Error(`success_status can't be ${successStatus}`);
  if (isStreamed && successStatus !== 200) throw new Error("the status of a stream is 200");
  if (stream && response) throw new Error("response_body and the option stream both say what of a response is sent");
  if (annotated.acceptsEmptyMask && !mask) throw new Error("accepts_empty_mask needs an update_mask in the request");
  if (annotated.location && !record) throw new Error("location needs an answer with one record");
  if (annotated.location && record) parseTemplate(annotated.location, record);
  const unclampable = free.find((field) => isClamped(field) && !(field.scalar && isInteger(field.scalar)));
  if (unclampable) throw new Error(`${unclampable.name} is clamped, which only an integer can be`);
  return {
    id: idOf(method, verb, mask !== undefined),
    service,
    method,
    tag: getOption(service, tag) || service.name,
    verb,
    route,
    path: shownPath(template, wildcardNames(template)),
    template,
    params,
    query,
    requestHeaders: headers.filter(({ field }) => !isOutputOnly(field)),
    body,
    updateMask,
    maskParameter,
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

const recordOf = (response: DescField | undefined, whole: DescMessage): DescMessage | undefined =>
  response ? (response.fieldKind === "message" ? response.message : undefined) : whole;

const listed = (response: DescField | undefined): DescMessage | undefined =>
  response?.fieldKind === "list" ? response.message : undefined;

function bodyOf(rule: HttpRule, free: readonly DescField[]): Body | undefined {
  if (rule.body === "") return undefined;
  return rule.body === "*" ? { kind: "all", fields: free } : { kind: "field", field: named(rule.body, free, "body") };
}

function pagingOf(query: readonly DescField[], output: readonly DescField[]): Operation["paging"] {
  const pageToken = query.find(({ name }) => name === "page_token");
  const nextPageToken = output.find(({ name }) => name === "next_page_token");
  return pageToken && nextPageToken ? { pageToken, nextPageToken } : undefined;
}

function named(name: string, fields: readonly DescField[], option: string): DescField {
  const field = fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`${option} names "${name}", which is no free field`);
  return field;
}

/** The id of one binding of an RPC, by itself: of several with one verb all have the same. */
function idOf(method: DescMethod, verb: string, hasMask: boolean): string {
  const { localName } = method;
  const [, updated] = /^update([A-Z]\w*)$/.exec(localName) ?? [];
  if (hasMask && updated) return verb === "PUT" ? `replace${updated}` : localName;
  const isFirst = !hasOption(method, http) || verb === verbOf(getOption(method, http));
  return isFirst ? localName : localName + (verb === ANY_VERB ? "Any" : verb.split("-").map(capitalized).join(""));
}

const capitalized = (word: string): string => word.charAt(0) + word.slice(1).toLowerCase();

/** The verbs that requests come with. CONNECT never comes so far: it asks for a proxy. */
export const VERBS: readonly string[] = METHODS.filter((verb) => verb !== "CONNECT");

/** In a contract, whatever verb no other rule has. */
export const ANY_VERB = "*";

/** @throws Error when the rule has none, or one that no request comes with */
function verbOf({ pattern }: HttpRule): string {
  if (pattern.case === undefined) throw new Error("its HTTP rule needs a verb with a path");
  if (pattern.case !== "custom") return pattern.case.toUpperCase();
  const { kind } = pattern.value;
  if (kind !== ANY_VERB && !VERBS.includes(kind))
    throw new Error(`its HTTP rule has the verb "${kind}"; there are *, ${VERBS.join(", ")}`);
  return kind;
}

const pathOf = ({ pattern }: HttpRule): string =>
  pattern.case === "custom" ? pattern.value.path : (pattern.value ?? "");

/** When an operation ends, as annotated. @throws Error when its dates are none, or in the wrong order */
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
