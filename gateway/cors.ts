/** Lets web pages of other origins call both endpoints from a browser. */
import type { IncomingMessage } from "node:http";
import { cors as connectCors } from "@connectrpc/connect";
import fastifyCors, { type FastifyCorsOptions } from "@fastify/cors";
import type { FastifyInstance, FastifyRequest } from "fastify";

export type Cors = ReturnType<typeof cors>;

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

const REQUEST_HEADERS = [
  "Accept",
  "Authorization",
  "Baggage",
  "Cache-Control",
  "Idempotency-Key",
  "If-Match",
  "If-None-Match",
  "Last-Event-ID",
  "Prefer",
  "Sentry-Trace",
  "Traceparent",
  "Tracestate",
  "X-API-Key",
  "X-Request-Id",
  "X-Requested-With",
  "X-Server-Timeout",
  ...connectCors.allowedHeaders,
];

const RESPONSE_HEADERS = [
  "Accept",
  "Accept-Encoding",
  "Accept-Patch",
  "Accept-Post",
  "Allow",
  "API-Version",
  "Deprecation",
  "ETag",
  "Idempotent-Replayed",
  "Link",
  "Location",
  "RateLimit",
  "RateLimit-Policy",
  "Retry-After",
  "Sunset",
  "WWW-Authenticate",
  "X-Request-Id",
  ...connectCors.exposedHeaders,
];

const PREFLIGHT_SECONDS = 7200; // Chromium's maximum

/** `origins` holds origins, or "*" for all. Without any, answers carry no CORS headers. */
export const cors = (origins: readonly string[]) => ({
  register: (app: FastifyInstance) => register(app, origins),
  /** The header fields of an answer that no route gives. */
  headers: corsHeaders(origins),
});

async function register(app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  const options: FastifyCorsOptions = {
    origin: [...origins],
    methods: METHODS,
    allowedHeaders: REQUEST_HEADERS,
    exposedHeaders: RESPONSE_HEADERS,
    maxAge: PREFLIGHT_SECONDS,
  };
  // An OPTIONS that is no preflight is answered as if there were no CORS.
  await app.register(fastifyCors, {
    delegator: (request, done) => done(null, { ...options, preflight: isPreflight(request) }),
  });
}

/** The header fields that the plugin adds, for answers that bypass it. */
function corsHeaders(origins: readonly string[]): (request: IncomingMessage) => Record<string, string> {
  if (origins.length === 0) return () => ({});
  const common = { vary: "Origin", "access-control-expose-headers": RESPONSE_HEADERS.join(", ") };
  return ({ headers: { origin } }) => {
    const allowed = origins.includes("*") ? "*" : origins.find((one) => one === origin);
    return allowed === undefined ? common : { ...common, "access-control-allow-origin": allowed };
  };
}

const isPreflight = ({ headers }: FastifyRequest): boolean =>
  headers.origin !== undefined && headers["access-control-request-method"] !== undefined;
