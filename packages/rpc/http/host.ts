/** The host in the headers of a request, for code that builds a URL from it, as Connect does. */
import type { IncomingMessage } from "node:http";
import { withBrackets } from "connect-transcoder/request/host";

type Headers = Pick<IncomingMessage, "headers">;

/** Adds the host that HTTP/1.0 may leave out (RFC 9112 section 3.3). */
export function ensureHost({ httpVersionMajor, headers }: Headers & Pick<IncomingMessage, "httpVersionMajor">): void {
  if (httpVersionMajor === 1) headers.host ??= "localhost";
}

/** Adds the brackets that Node's HTTP/2 client leaves out of an IPv6 address. */
export function mendAuthority({ headers }: Headers): void {
  const { ":authority": authority } = headers;
  if (typeof authority === "string") headers[":authority"] = withBrackets(authority);
}
