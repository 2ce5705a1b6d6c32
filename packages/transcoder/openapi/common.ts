/** Headers that no message describes. */
import { REQUEST_ID_PATTERN } from "../request/request-id.ts";
import type { JsonObject } from "./json.ts";

/** The headers of answers. Required ones are on every answer that lists them. Mocks send the examples. */
export const commonHeaders = (apiVersion: string, asksCallers: boolean): JsonObject => ({
  "X-Request-Id": required(
    "The request's identifier: the caller's if it sent one that can stand in a log, else the id of its trace.",
    { type: "string", pattern: REQUEST_ID_PATTERN },
    "4bf92f3577b34da6a3ce929d0e0e4736",
  ),
  "API-Version": required("The version of this interface.", { type: "string", const: apiVersion }),
  "X-Content-Type-Options": required("The answer is what its Content-Type says, whatever it looks like (Fetch, 3.6).", {
    type: "string",
    const: "nosniff",
  }),
  "Cache-Control": required(
    "`no-cache` on what was read: it may be kept, but not shown again without asking, best with `If-None-Match`. " +
      "`no-store` on answers to writes, on events and on errors (RFC 9111, 5.2.2).",
    { type: "string", enum: ["no-cache", "no-store"] },
  ),
  Vary: required(
    "What in the request the answer depends on, beside its address (RFC 9110, 12.5.5).",
    { type: "string", pattern: "^(Origin, )?Accept$" },
    "Accept",
  ),
  ETag: required(
    "The record's revision, a strong entity tag. It changes if and only if the record does.",
    { type: "string", pattern: '^"[!#-~]+"$' },
    '"1"',
  ),
  Location: required("Where the record that was created is found.", { type: "string", format: "uri-reference" }),
  Link: header(
    'Links (RFC 8288): `rel="next"` is the next page of a list, if there is one; `rel="successor-version"` is what to ' +
      "call instead of a deprecated operation.",
  ),
  Deprecation: header("Since when the operation is deprecated (RFC 9745).", { pattern: "^@-?\\d+$" }, "@1793491200"),
  Sunset: header(
    "From when on the operation may be gone (RFC 8594).",
    { pattern: " GMT$" },
    "Fri, 31 Dec 2027 23:59:59 GMT",
  ),
  "Idempotent-Replayed": header("`true` when this is the first answer to the same key, sent again.", { const: "true" }),
  "X-Accel-Buffering": required("Asks proxies, such as nginx, to pass each event on as it comes.", {
    type: "string",
    const: "no",
  }),
  "Retry-After": required(
    "Seconds to wait before the request is sent again (RFC 9110, 10.2.3).",
    { type: "integer", minimum: 0 },
    1,
  ),
  ...(asksCallers && {
    "WWW-Authenticate": header("How to show who you are, and the scope that is missing (RFC 6750, 3).", {
      pattern: "^Bearer realm=",
    }),
  }),
  Accept: header("The media types that PUT takes, where another was sent (RFC 9110, 12.5.1)."),
  "Accept-Post": header("The same for POST (Linked Data Platform, 7.1)."),
  "Accept-Patch": header("The same for PATCH (RFC 5789)."),
  "Accept-Encoding": header("The codings that a body may have, where another was sent (RFC 9110, 12.5.3).", {
    const: "identity",
  }),
});

const required = (description: string, schema: JsonObject, example?: string | number): JsonObject => ({
  description,
  required: true,
  schema,
  example,
});
const header = (description: string, rules: JsonObject = {}, example?: string): JsonObject => ({
  description,
  schema: { type: "string", ...rules },
  example,
});
