/** The host in the headers of a request, for code that builds a URL from it, as Connect does. */
import type { IncomingMessage } from "node:http";
import { hostInTarget, withBrackets } from "connect-transcoder/request/host";

type Request = Pick<IncomingMessage, "headers" | "httpVersionMajor" | "url">;

/** Adds the host that HTTP/1.0 may leave out (RFC 9112 section 3.3). */
export function ensureHost({ httpVersionMajor, headers }: Omit<Request, "url">): void {
  if (httpVersionMajor === 1) headers.host ??= "localhost";
}

/**
 * Puts in place the host that counts: that of the target, if it names one (RFC 9112 section 3.2.2); and with the brackets that
 * Node's HTTP/2 client leaves out of an IPv6 address.
 */
export function mendHost({ httpVersionMajor, headers, url }: Request): void {
  const { ":authority": authority } = headers;
  const inTarget = httpVersionMajor === 1 ? hostInTarget(url) : undefined;
  if (inTarget !== undefined) headers.host = inTarget;
  else if (typeof authority === "string") headers[":authority"] = withBrackets(authority);
}
