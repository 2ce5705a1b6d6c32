/**
 * Conditional reads (RFC 9110, 13): how the lists of tags are parsed and judged, and what to do about weak tags, which writes say
 * too. Conditions on writes are judged where the write is made, which alone can do it safely.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Operation } from "../contract/operation.ts";
import { fieldError, HttpError } from "../errors/http-error.ts";
import type { Answer } from "../response/answer.ts";

/** Whether the operation reads one record that has an entity tag, be it by a list, so that a read can be conditional. */
export const isConditional = ({ verb, responseHeaders }: Operation): boolean =>
  verb === "GET" && responseHeaders.some(({ name }) => name === "ETag");

// One element of the list, which may be empty, and the comma behind it. Space behind an empty one has one place only.
const ELEMENT = /[ \t]*(?:((?:W\/)?"[\x21\x23-\x7E\x80-\xFF]*")[ \t]*)?(,|$)/y;

/** What If-Match or If-None-Match names: tags as they were sent, or anything. */
type EntityTags = "*" | ReadonlySet<string>;

/** @throws HttpError INVALID_HEADER when it is neither `*` nor a list of entity tags. */
export function parseEntityTags(header: string, value: string): EntityTags {
  if (/^[ \t]*\*[ \t]*$/.test(value)) return "*";
  const tags = new Set<string>();
  ELEMENT.lastIndex = 0;
  for (let more = true; more; ) {
    const element = ELEMENT.exec(value);
    if (!element) break;
    if (element[1] !== undefined) tags.add(element[1]);
    more = element[2] === ",";
    if (!more && tags.size > 0) return tags;
  }
  throw fieldError("INVALID_HEADER", header, 'must be * or a list of entity tags such as "3"');
}

/** What a caller says of the record that it wants to read. @throws HttpError INVALID_HEADER */
export function readConditions(headers: IncomingHttpHeaders) {
  const read = (header: "If-Match" | "If-None-Match") => {
    const value = headers[header.toLowerCase()];
    return value === undefined ? undefined : parseEntityTags(header, String(value));
  };
  return { ifMatch: read("If-Match"), ifNoneMatch: read("If-None-Match") };
}

/**
 * What becomes of the answer with a record when the conditions are judged, in the order of RFC 9110, 13.2.2: it stays, or
 * it is 304 with the same headers, since the caller holds it already.
 *
 * @throws HttpError ETAG_MISMATCH when the record is not one that If-Match names
 */
export function judgeConditions({ ifMatch, ifNoneMatch }: ReturnType<typeof readConditions>, answer: Answer): Answer {
  const { etag = "" } = answer.headers;
  // RFC 9110, 8.8.3.2: weak tags match nothing.
  if (ifMatch && ifMatch !== "*" && (isWeak(etag) || !ifMatch.has(etag))) {
    const advice = isWeak(etag) ? "It matches no weak tag, as this one is." : weakTagAdvice(ifMatch);
    const message = `The record is at revision ${etag} now, which If-Match does not name.`;
    throw new HttpError("ETAG_MISMATCH", advice ? `${message} ${advice}` : message);
  }
  return ifNoneMatch && matchesWeakly(ifNoneMatch, etag) ? { ...answer, status: 304, body: undefined } : answer;
}

/** RFC 9110, 8.8.3.2: whether the caller has this representation already, be it by a weak tag. */
function matchesWeakly(tags: EntityTags, etag: string): boolean {
  const strong = isWeak(etag) ? etag.slice("W/".length) : etag;
  return tags === "*" || tags.has(strong) || tags.has(`W/${strong}`);
}

const isWeak = (tag: string): boolean => tag.startsWith("W/");

/** What to do when If-Match names these tags and does not hold; undefined if none is weak. */
export const weakTagAdvice = (tags: Iterable<string>): string | undefined =>
  [...tags].some(isWeak)
    ? "A weak tag (W/) never matches here. A proxy that compresses answers makes tags weak: send it without the W/."
    : undefined;
