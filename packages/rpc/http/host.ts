/** The host in the headers of a request, for code that builds a URL from it, as Connect does. */
import type { IncomingMessage } from "node:http";
import { hostInTarget, withBrackets } from "connect-transcoder/http";

/**
 * Puts in place the host that counts: that of the target, if it names one (RFC 9112 section 3.2.2); one where HTTP/1.0 leaves
 * it out (section 3.3); and with the brackets that Node's HTTP/2 client leaves out of an IPv6 address.
 */
export function mendHost({ httpVersionMajor, headers, url }: IncomingMessage): void {
  const { ":authority": authority } = headers;
  if (httpVersionMajor === 1) headers.host = hostInTarget(url) ?? headers.host ?? "localhost";
  else if (typeof authority === "string") headers[":authority"] = withBrackets(authority);
}
