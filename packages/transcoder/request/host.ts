/** Whom a request is addressed to (RFC 9110 section 7.2; RFC 9113 section 8.3.1). */
import type { IncomingMessage } from "node:http";
import { isIPv6 } from "node:net";

/** A host, with or without a port: nothing that a URL could read as a user, a path or a query. Linear. */
export const isHost = (text: string): boolean => /^[^\s/?#@\\]+$/.test(text) && URL.canParse(`http://${text}`);

/**
 * Puts an IPv6 address in brackets. Node's HTTP/2 client leaves them out of `:authority`, where it always names a port:
 * `::1:8080` is `[::1]:8080`.
 */
export function withBrackets(authority: string): string {
  const colon = authority.lastIndexOf(":");
  const host = authority.slice(0, colon);
  return isIPv6(host) ? `[${host}]${authority.slice(colon)}` : authority;
}

/** The host that a target names by itself, in absolute form (RFC 9112, 3.2.2): it counts instead of `Host`. */
export const hostInTarget = (target = "/"): string | undefined =>
  target.startsWith("/") ? undefined : /^https?:\/\/([^/?#]*)/i.exec(target)?.[1];

/**
 * What is wrong with the Host of a request, in words that follow it; undefined when nothing is. HTTP/1.1 names its host in
 * one `Host`, also beside a target that names one, HTTP/2 in `:authority`, in `Host`, or in both if they agree. HTTP/1.0 may
 * leave it out.
 */
export function hostProblem({
  httpVersion,
  rawHeaders,
  url,
}: Pick<IncomingMessage, "httpVersion" | "rawHeaders" | "url">) {
  let authority: string | undefined;
  let host: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (isNamed(name, "host")) {
      if (host !== undefined) return "must be given once";
      host = rawHeaders[i + 1];
    } else if (isNamed(name, ":authority")) {
      if (authority !== undefined) return "must be given once";
      authority = withBrackets(rawHeaders[i + 1] as string);
    }
  }
  const named = authority ?? host;
  if (named === undefined && httpVersion !== "1.0") return "must be given once";
  if (host !== undefined && host !== named) return "must not differ from :authority";
  const inTarget = hostInTarget(url);
  const isWrong = (text: string | undefined) => text !== undefined && !isHost(text);
  return isWrong(named) || isWrong(inTarget) ? "must be a host name or an address, with or without a port" : undefined;
}

const isNamed = (name: string, lowerCase: string): boolean =>
  name.length === lowerCase.length && name.toLowerCase() === lowerCase;
