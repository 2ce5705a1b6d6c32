/** Errors that Fastify and Node throw, in our own words. */
import { STATUS_CODES } from "node:http";
import { fieldError, HttpError } from "./http-error.ts";
import { INTERNAL } from "./service-errors.ts";

const NOT_FOUND = new HttpError("ROUTE_NOT_FOUND", "There is nothing at this path.");

const byCode: Record<string, HttpError> = {
  FST_ERR_CTP_BODY_TOO_LARGE: new HttpError("PAYLOAD_TOO_LARGE", "The body is too large."),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: new HttpError(
    "UNSUPPORTED_MEDIA_TYPE",
    "The Content-Type of the body is not supported.",
  ),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: fieldError("INVALID_HEADER", "Content-Length", "must be the length of the body"),
  FST_ERR_BAD_URL: NOT_FOUND,
  FST_ERR_MAX_PARAM_LENGTH: new HttpError("URI_TOO_LONG", "The request target is too long."),
  ECONNRESET: new HttpError("INVALID_HEADER", "The request ended before its body was complete."),
};

export function fromFastify(thrown: unknown): HttpError {
  const { code, statusCode, message } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown; message?: unknown };
  const known = byCode[String(code)];
  if (known) return known;
  if (statusCode === 404) return NOT_FOUND;
  const title = STATUS_CODES[Number(statusCode)];
  // From a route of the host's own: its status and words are passed on. With a catalogue, which lacks the code, this becomes a 500.
  if (!title || Number(statusCode) < 400 || Number(statusCode) > 499) return INTERNAL;
  return new HttpError(title.toUpperCase().replaceAll(/\W+/g, "_"), String(message), {}, Number(statusCode));
}
