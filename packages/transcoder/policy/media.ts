/** The media types of requests and answers: Content-Type and Accept. */
import type { IncomingHttpHeaders } from "node:http";
import { MIMEType } from "node:util";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Operation, streamsRequests, takesBytes } from "../contract/operation.ts";
import { excerpt, HttpError } from "../errors/http-error.ts";

export const JSON_TYPE = "application/json";
/** With the charset that Fastify would add. */
export const JSON_UTF8 = `${JSON_TYPE}; charset=utf-8`;
export const LINES_TYPE = "application/x-ndjson";
export const EVENTS_TYPE = "text/event-stream";
export const PROBLEM_TYPE = "application/problem+json";
const MERGE_PATCH_TYPE = "application/merge-patch+json";
export const ACCEPT_PATCH = { "accept-patch": `${MERGE_PATCH_TYPE}, ${JSON_TYPE}` };

/**
 * Checks that the caller accepts JSON. One that accepts only problems (RFC 9457) means errors, so it gets JSON, too, unless it
 * gives JSON the weight 0.
 *
 * @throws HttpError NOT_ACCEPTABLE when the header Accept leaves no JSON.
 */
export function checkAccept({ headers }: FastifyRequest): void {
  if (headers.accept === undefined || headers.accept === "*/*") return; // what most clients say
  const ranges = parseAccept(headers.accept);
  if ((weightOf(ranges, JSON_TYPE) ?? weightOf(ranges, PROBLEM_TYPE) ?? 0) === 0)
    throw new HttpError("NOT_ACCEPTABLE", `The answer is ${JSON_TYPE}; the header Accept does not allow it.`);
}

/**
 * Chooses the type with the highest weight in Accept. Of several, one that is named goes before one that a wildcard includes,
 * and then the first one.
 *
 * @throws HttpError NOT_ACCEPTABLE when the header Accept leaves none.
 */
export function preferredType({ headers }: FastifyRequest, offered: readonly string[]): string {
  const ranges = parseAccept(headers.accept);
  const wanted = offered
    .map((type) => ({ type, weight: weightOf(ranges, type) ?? 0, named: Number(isNamed(ranges, type)) }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || b.named - a.named)[0];
  if (wanted) return wanted.type;
  const none = offered.length > 2 ? "none of them" : "neither";
  throw new HttpError("NOT_ACCEPTABLE", `The answer is ${offered.join(" or ")}; the header Accept allows ${none}.`);
}

/**
 * Whether the caller wants errors as problems (RFC 9457): Accept names their type with a weight not below that of JSON, or a
 * wildcard gives it a higher one. Who names both types means JSON for answers and problems for errors.
 */
export function wantsProblem({ headers }: { readonly headers: IncomingHttpHeaders }): boolean {
  if (headers.accept === undefined || headers.accept === "*/*") return false; // what most clients say
  const ranges = parseAccept(headers.accept);
  const [json, problem] = [weightOf(ranges, JSON_TYPE) ?? 0, weightOf(ranges, PROBLEM_TYPE) ?? 0];
  return problem > json || (problem > 0 && problem === json && isNamed(ranges, PROBLEM_TYPE));
}

/** Adds Accept to the header Vary, which CORS may have set. */
export function varyByAccept(reply: FastifyReply): void {
  const others = reply.getHeader("vary");
  if (others === undefined) return void reply.header("vary", "Accept");
  const fields = String(others)
    .split(", ")
    .filter((field) => field !== "" && field !== "Accept");
  reply.header("vary", [...fields, "Accept"].join(", "));
}

/** What a body may be, anything if no type is named, and the header of a 415 that says so (RFC 9110, 15.5.16; RFC 5789, 3.1; Linked Data Platform, 7.1). */
export interface BodyTypes {
  readonly types: readonly string[];
  readonly header: Readonly<Record<string, string>>;
  /** Whether a body has to say its type. Otherwise one that does not is JSON. */
  readonly isTyped: boolean;
}

const ACCEPT: Readonly<Record<string, string>> = { POST: "accept-post", PATCH: "accept-patch" };

export function bodyTypesOf(
  operation: Pick<Operation, "method" | "verb" | "updateMask" | "body">,
  isTyped: boolean,
): BodyTypes {
  if (takesBytes(operation)) return { types: [], header: {}, isTyped: false };
  const { verb, updateMask } = operation;
  const special = streamsRequests(operation) ? [LINES_TYPE] : updateMask ? [MERGE_PATCH_TYPE] : [];
  const types = [...special, JSON_TYPE];
  return { types, header: { [ACCEPT[verb] ?? "accept"]: types.join(", ") }, isTyped };
}

/**
 * Checks that a body is JSON in UTF-8 and not compressed. If the type is missing and the length unknown, there may be no body at
 * all: `checkUntyped` looks at that later.
 *
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE
 */
export function checkContentType(headers: IncomingHttpHeaders, { types, header, isTyped }: BodyTypes): void {
  const codings = headers["content-encoding"]?.split(",").map((name) => name.trim().toLowerCase());
  const coding = codings?.find((name) => name !== "" && name !== "identity");
  if (coding !== undefined) throw new HttpError("UNSUPPORTED_MEDIA_TYPE", codingProblem(coding), ACCEPT_ENCODING);
  if (types.length === 0) return;
  const refuse = (message: string) =>
    new HttpError("UNSUPPORTED_MEDIA_TYPE", `${message}; send ${types.join(" or ")} in UTF-8.`, header);
  const given = headers["content-type"];
  if (given === undefined) {
    if (isTyped && Number(headers["content-length"] ?? 0) > 0) throw refuse("The body has no Content-Type");
    return;
  }
  const type = parseType(given);
  if (!type || !types.includes(type.essence)) throw refuse("The Content-Type of the body is not supported");
  if (!isUtf8(type)) throw refuse("The charset of the body is not supported");
}

/** Only sent if the coding is wrong: a 415 without it means that the media type is wrong (RFC 9110, 12.5.3). */
const ACCEPT_ENCODING = { "accept-encoding": "identity" };

const codingProblem = (coding: string): string =>
  isCharset(coding)
    ? `Content-Encoding: ${excerpt(coding)} is a charset, not a compression. It belongs into Content-Type; send no Content-Encoding.`
    : "The body must not be compressed; send it as it is, without Content-Encoding.";

/** Checks a request without a type again when its body has been read. */
export function checkUntyped(headers: IncomingHttpHeaders, body: Uint8Array | undefined, types: BodyTypes): void {
  if (body && body.length > 0 && headers["content-type"] === undefined)
    checkContentType({ ...headers, "content-length": String(body.length) }, types);
}

/** Reads a media type (RFC 9110, 8.3). Undefined for what is none. Parameters that are not well-formed are left out. */
export function parseType(text: string): MIMEType | undefined {
  try {
    return new MIMEType(text);
  } catch {
    return undefined;
  }
}

/** Whether a body of this type is lines, and nothing else. */
export const isLines = (contentType = ""): boolean => parseType(contentType)?.essence === LINES_TYPE;

/** Whether text of this type is in UTF-8, as it is where no charset is named. */
export const isUtf8 = ({ params }: MIMEType): boolean => /^utf-?8$/i.test(params.get("charset") ?? "utf-8");

/** Whether a text is the name of a charset, which some take for a coding. */
export function isCharset(text: string): boolean {
  try {
    return new TextDecoder(text) !== undefined;
  } catch {
    return false;
  }
}

/** One media range: its type in lower case, how narrow it is, and how much its types are wanted. */
interface MediaRange {
  readonly type: string;
  /** From 0 for everything to 3 for one type with parameters. */
  readonly precision: number;
  /** 0 to 1; with 0 the types are not acceptable. */
  readonly weight: number;
}

/** Without the header, or without a value, anything goes. What is no media range says nothing and is left out. */
export const parseAccept = (value = ""): readonly MediaRange[] =>
  value.trim() === "" ? [ANYTHING] : elements(value, ",").flatMap(parseRange);

const ANYTHING: MediaRange = { type: "*/*", precision: 0, weight: 1 };

/** The weight that the narrowest of the ranges gives to a type; undefined when none is about it. Of two, the higher. */
export function weightOf(ranges: readonly MediaRange[], type: string): number | undefined {
  const all = [type, `${type.split("/")[0]}/*`, "*/*"];
  let narrowest: MediaRange | undefined;
  for (const range of ranges)
    if (all.includes(range.type) && (!narrowest || isAhead(range, narrowest))) narrowest = range;
  return narrowest?.weight;
}

const isAhead = (a: MediaRange, b: MediaRange): boolean =>
  a.precision === b.precision ? a.weight > b.weight : a.precision > b.precision;

/** Whether a range is about this type and no other. */
export const isNamed = (ranges: readonly MediaRange[], type: string): boolean =>
  ranges.some((range) => range.type === type);

function parseRange(text: string): MediaRange[] {
  const [range = "", ...parameters] = elements(text, ";");
  const type = range.trim().toLowerCase();
  if (!TYPE.test(type)) return [];
  const given = parameters.map((parameter) => parameter.trim().toLowerCase());
  const at = given.findIndex((parameter) => parameter.startsWith("q="));
  const weight = at < 0 ? "1" : (given[at] as string).slice("q=".length);
  // JSON has no parameters. Some ask for it with a charset, which says nothing about it.
  const narrower = given.slice(0, at < 0 ? undefined : at).filter((parameter) => parameter !== "");
  if (!WEIGHT.test(weight) || !narrower.every((parameter) => CHARSET.test(parameter))) return [];
  const precision = type === "*/*" ? 0 : type.endsWith("/*") ? 1 : narrower.length === 0 ? 2 : 3;
  return [{ type, precision, weight: Math.min(1, Number(weight)) }];
}

const TYPE = /^(\*\/\*|[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+)$/;
const WEIGHT = /^(?=\.?\d)\d*(\.\d*)?$/; // more than three digits do no harm
const CHARSET = /^charset="?utf-8"?$/;

/** What stands between separators outside of quotes. A quote that does not end reaches to the end. */
function elements(text: string, separator: "," | ";"): string[] {
  const found: string[] = [];
  let [start, quoted] = [0, false];
  for (let i = 0; i < text.length; i++) {
    const sign = text[i];
    if (sign === '"') quoted = !quoted;
    else if (sign === "\\" && quoted) i++;
    else if (sign === separator && !quoted) {
      found.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...found, text.slice(start)];
}
