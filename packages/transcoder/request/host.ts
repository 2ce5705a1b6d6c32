/** Whom a request is addressed to (RFC 9110 section 7.2; RFC 9113 section 8.3.1). */
import type { IncomingMessage } from "node:http";

/** A host, with or without a port: nothing that a URL could read as a user, a path or a query. Linear. */
export const isHost = (text: string): boolean => /^[^\s/?#@\\]+$/.test(text) && URL.canParse(`http://${text}`);

/**
 * What is wrong with the Host of a request, in words that follow it; undefined when nothing is. HTTP/1.1 names its host in
 * one `Host`, HTTP/2 in `:authority`, in `Host`, or in both if they agree. HTTP/1.0 may leave it out.
 */
export function hostProblem({ httpVersion, rawHeaders }: Pick<IncomingMessage, "httpVersion" | "rawHeaders">) {
  const named = (name: string) => rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
  const given = [named(":authority"), named("host")];
  if (given.some(({ length }) => length > 1)) return "must be given once";
  const [host, other = host] = given.flat();
  if (host === undefined) return httpVersion === "1.0" ? undefined : "must be given once";
  if (host !== other) return "must not differ from :authority";
  return isHost(host) ? undefined : "must be a host name or an address, with or without a port";
}
