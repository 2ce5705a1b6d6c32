/** Checks that the answers of a gateway are exactly what its OpenAPI document describes. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { createParser } from "eventsource-parser";

/** An OpenAPI 3.1 document, as parsed from JSON. */
// biome-ignore lint/suspicious/noExplicitAny: a document is walked by names that only it knows
export type Document = any;

export interface SeenRequest {
  readonly method: string;
  /** Path and query, with the base path. */
  readonly target: string;
}

export interface SeenResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/**
 * @throws Error that lists everything that the document does not allow: an operation, status, header, media type or member
 * that is not listed, a required one that is missing, a value that breaks its schema, an integer that is not exact.
 */
export function checkAgainstDocument(document: Document, request: SeenRequest, response: SeenResponse): void {
  const findings = [...judge(document, request, response)];
  if (findings.length === 0) return;
  const head = `${request.method} ${request.target} -> ${response.status} is not what the OpenAPI document says:`;
  throw new Error(
    [head, ...findings.map((finding) => `  - ${finding}`), `  body: ${response.text.slice(0, 500)}`].join("\n"),
  );
}

function* judge(document: Document, request: SeenRequest, response: SeenResponse): Iterable<string> {
  const path = pathWithin(document, request.target);
  if (path === undefined || isBeside(path)) return;
  // A path without parameters takes precedence over one with them, as in OpenAPI.
  const template = document.paths[path] ? path : Object.keys(document.paths).find((one) => matches(one, path));
  if (template === undefined) return yield* judgeRecord(document, response, 404, "ROUTE_NOT_FOUND");
  const item = document.paths[template];
  const isHead = request.method === "HEAD" && item.get !== undefined;
  const verb = isHead ? "get" : request.method.toLowerCase();
  const operation = item[verb];
  if (operation === undefined) return yield* judgeOtherMethod(document, request.method, response, item);
  const pointer = ["paths", template, verb, "responses", String(response.status)];
  const expected = resolve(document, operation.responses[response.status]);
  if (expected === undefined) return yield `status ${response.status} is not among ${Object.keys(operation.responses)}`;
  yield* judgeHeaders(document, expected.headers ?? {}, response.headers);
  yield* judgeBody(
    document,
    expected,
    operation.responses[response.status].$ref ?? `#/${pointer.map(pointerStep).join("/")}`,
    response,
    isHead,
  );
}

/** The path after the server's base path; undefined if the target is outside of it. */
function pathWithin({ servers }: Document, target: string): string | undefined {
  const base = new URL(servers[0].url, ROOT).pathname.replace(/\/$/, "");
  const [path = ""] = target.split("?", 1);
  return path.startsWith(`${base}/`) ? path.slice(base.length) : undefined;
}

/** Whether a path is outside of the described API: documentation, health, and RPCs of other protocols. */
const isBeside = (path: string): boolean =>
  /^\/(docs(\/.*)?|openapi\.json|healthz|readyz|[\w.]+\.[A-Z]\w*Service\/\w+)$/.test(path);

function matches(template: string, path: string): boolean {
  const [wanted, given] = [template.split("/"), path.split("/")];
  return (
    wanted.length === given.length &&
    wanted.every((part, i) => (part.startsWith("{") ? given[i] !== "" : part === given[i]))
  );
}

function* judgeOtherMethod(document: Document, method: string, response: SeenResponse, item: object): Iterable<string> {
  const verbs = Object.keys(item).map((verb) => verb.toUpperCase());
  const expected = [...verbs, ...(verbs.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort().join(", ");
  const allow = response.headers.get("allow");
  if (allow !== expected) yield `header Allow is "${allow}" instead of "${expected}"`;
  if (method !== "OPTIONS") return yield* judgeRecord(document, response, 405, "METHOD_NOT_ALLOWED");
  if (response.status !== 204) yield "OPTIONS must be answered by 204";
}

/** The answer to a request that reached no operation, because its path, its method or its HTTP was wrong. */
function* judgeRecord(document: Document, response: SeenResponse, status: number, code: string): Iterable<string> {
  if (response.status !== status) return yield `a request that reaches no operation must get ${status} ${code}`;
  if (response.text === "") return; // HEAD
  const schema = response.headers.get("content-type")?.startsWith("application/problem") ? "Problem" : "Error";
  yield* judgeValue(document, `#/components/schemas/${schema}`, response.text);
  const record = JSON.parse(response.text);
  if (record.code !== code || record.status !== status) yield `the record must say ${status} ${code}`;
}

/** Headers of HTTP itself, which OpenAPI leaves out. */
const OF_HTTP = /^(date|connection|keep-alive|transfer-encoding|content-length|content-type|access-control-.*)$/;

function* judgeHeaders(document: Document, listed: Record<string, Document>, headers: Headers): Iterable<string> {
  const names = new Set(Object.keys(listed).map((name) => name.toLowerCase()));
  for (const name of headers.keys()) if (!OF_HTTP.test(name) && !names.has(name)) yield `header ${name} is not listed`;
  for (const [name, reference] of Object.entries(listed)) {
    const { required, schema } = resolve(document, reference);
    const value = headers.get(name);
    if (value === null) {
      if (required) yield `header ${name} is missing`;
      continue;
    }
    const check = compilerFor(document).compile(schema);
    if (!check(schema.type === "integer" ? Number(value) : value)) yield `header ${name}: "${value}" ${explain(check)}`;
  }
}

function* judgeBody(
  document: Document,
  expected: Document,
  pointer: string,
  response: SeenResponse,
  isHead: boolean,
): Iterable<string> {
  const { content } = expected;
  if (content === undefined) {
    if (response.text !== "") yield "there must be no body";
    return;
  }
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  if (content[type] === undefined) return yield `media type "${type}" is not among ${Object.keys(content)}`;
  if (isHead) {
    if (response.text !== "") yield "an answer to HEAD must have no body";
    return;
  }
  const place = `${pointer}/content/${pointerStep(type)}`;
  if (content[type]["x-itemSchema"]) yield* judgeEvents(document, `${place}/x-itemSchema`, type, response.text);
  else yield* judgeValue(document, `${place}/schema`, response.text);
  if (type === "application/problem+json") yield* judgeMembers(document, `${pointer}/content`, response.text);
}

/** The members of a problem that an error has too say the same as there. */
function* judgeMembers(document: Document, contents: string, text: string): Iterable<string> {
  const { code, message, status } = JSON.parse(text);
  const error = JSON.stringify({ code, message, status });
  yield* judgeValue(document, `${contents}/${pointerStep("application/json")}/schema`, error);
}

/** Checks each event of a stream. */
function* judgeEvents(document: Document, pointer: string, type: string, text: string): Iterable<string> {
  if (type === "application/x-ndjson") {
    for (const line of text.split("\n").filter(Boolean)) yield* judgeValue(document, pointer, line);
    return;
  }
  const findings: string[] = [];
  const onEvent = (event: { data: string }) => {
    findings.push(...judgeValue(document, pointer, JSON.stringify(event)));
    findings.push(...judgeValue(document, `${pointer}/properties/data/contentSchema`, event.data));
  };
  createParser({ onEvent }).feed(text);
  yield* findings;
}

function* judgeValue(document: Document, pointer: string, text: string): Iterable<string> {
  const inexact: string[] = [];
  let value: unknown;
  try {
    value = JSON.parse(text, (name, member, context?: { source: string }) => {
      if (typeof member === "number" && !isExact(member, context?.source ?? ""))
        inexact.push(`${name}: ${context?.source}`);
      return member;
    });
  } catch {
    return yield "the body is no JSON";
  }
  if (inexact.length > 0) yield `not plain integers of 64 bits: ${inexact.join(", ")}`;
  const check = compilerFor(document).compile({ $ref: ROOT + pointer });
  if (!check(value)) yield `body${explain(check)}`;
}

/** Whether an integer is written as one and fits into 64 bits. Parsed values don't show it: a double can't hold all digits. */
function isExact(value: number, source: string): boolean {
  if (!Number.isInteger(value)) return true;
  return /^-?\d+$/.test(source) && BigInt(source) >= -(2n ** 63n) && BigInt(source) < 2n ** 64n;
}

const explain = ({ errors }: ValidateFunction): string =>
  (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
    .join("; ");

const ROOT = "https://document.invalid/";
const compilers = new WeakMap<object, { compile(schema: object): ValidateFunction }>();

function compilerFor(document: Document) {
  let compiler = compilers.get(document);
  if (!compiler) {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema({ ...closed(document), $id: ROOT });
    const known = new Map<string, ValidateFunction>();
    compiler = {
      compile(schema) {
        const key = JSON.stringify(schema);
        const check = known.get(key) ?? ajv.compile(schema);
        known.set(key, check);
        return check;
      },
    };
    compilers.set(document, compiler);
  }
  return compiler;
}

/**
 * The document with closed schemas. Its own are open, so that members can be added later; answers must have no others today.
 */
function closed(document: Document): Document {
  const schemas = Object.entries<Document>(document.components.schemas).map(([name, schema]) => [
    name,
    schema.type === "object" ? { additionalProperties: false, ...schema } : schema,
  ]);
  return { ...document, components: { ...document.components, schemas: Object.fromEntries(schemas) } };
}

const resolve = (document: Document, value: Document): Document =>
  value?.$ref === undefined
    ? value
    : value.$ref
        .slice("#/".length)
        .split("/")
        .reduce((part: Document, name: string) => part[name], document);

/** One step of a JSON pointer (RFC 6901) in a URI fragment. */
const pointerStep = (name: string): string => encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));
