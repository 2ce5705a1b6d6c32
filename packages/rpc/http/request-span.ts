/** What is recorded of a request at the server that answers it, by OpenTelemetry's conventions for HTTP: its span, and its method. */
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
} from "@petstore/trace/names";
import type { Origin, Span, Tracing } from "@petstore/trace/tracing";
import { splitTarget } from "connect-transcoder/http";

/** Over HTTP/2 a request may name any. */
const METHODS: ReadonlySet<string | undefined> = new Set([
  ...["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"],
]);

/** A name for each method of few. */
export const methodName = (method: string | undefined): string => (METHODS.has(method) ? (method as string) : "_OTHER");

export interface Asked {
  readonly method: string;
  /** As it was sent. */
  readonly target: string;
  /** The template of the path; undefined where it asks for nothing that there is. */
  readonly route: string | undefined;
  readonly scheme: "http" | "https";
}

export function startRequestSpan(tracing: Tracing, origin: Origin, { method, target, route, scheme }: Asked): Span {
  const known = methodName(method);
  return tracing.start(route === undefined ? known : `${known} ${route}`, "server", origin, {
    [ATTR_HTTP_REQUEST_METHOD]: known,
    [ATTR_URL_PATH]: splitTarget(target).path,
    [ATTR_URL_SCHEME]: scheme,
    ...(route !== undefined && { [ATTR_HTTP_ROUTE]: route }),
  });
}

/** With the status of the answer; 499 where the caller left before it began. */
export function endRequestSpan(span: Span, status: number): void {
  span.set({ [ATTR_HTTP_RESPONSE_STATUS_CODE]: status });
  if (status >= 500) span.fail(`${status}`);
  span.end();
}
