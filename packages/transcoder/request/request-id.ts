/** What a request is called: which identifiers are taken from callers, and new ones. `connect-transcoder/request-id`. */

/** Names a request in its answer, in logs and in the calls that are made for it. */
export const REQUEST_ID_HEADER = "x-request-id";

/** What a caller's own identifier for a request looks like, so that it can stand in any log. */
export const REQUEST_ID_PATTERN = "^[A-Za-z0-9._:/+=-]{1,128}$";
const requestIds = new RegExp(REQUEST_ID_PATTERN);
export const isRequestId = (text: string): boolean => requestIds.test(text);

/** With the trace id. Of a version above 00 there may be more (https://www.w3.org/TR/trace-context/). */
const traceparents =
  /^(?!ff)(?:00(?=.{53}$)|(?!00)[\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/;

type Field = string | string[] | null | undefined;

/** The identifier that a request came with, if it is one; else that of the trace that its traceparent names; else a new one. */
export function requestIdOf(given: Field, traceparent: Field, random: () => number): string {
  const text = String(given ?? "");
  if (isRequestId(text)) return text;
  return traceparents.exec(String(traceparent ?? ""))?.[1] ?? newRequestId(random);
}

/** 32 hex digits, so that it can name a trace. `random` is in [0, 1). */
export const newRequestId = (random: () => number): string =>
  `${word(random)}${word(random)}${word(random)}${word(random)}`;

/** For work that no request asked for. */
export const newWorkId = (random: () => number, kind: string): string => `${kind}-${word(random)}`;

const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Eight digits. By a table, for to write a number in another base takes V8 ten times as long. */
function word(random: () => number): string {
  const bits = random() * 2 ** 32;
  return `${BYTES[bits >>> 24]}${BYTES[(bits >>> 16) & 255]}${BYTES[(bits >>> 8) & 255]}${BYTES[bits & 255]}`;
}
