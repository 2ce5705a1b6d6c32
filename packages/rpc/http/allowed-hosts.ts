/**
 * Checks which host names a server answers to, against DNS rebinding: a web page can point its own name at this machine and
 * then call a server here as its own origin. The browser still sends the page's name as the host.
 */
import type { IncomingMessage } from "node:http";
import { BlockList, isIPv6 } from "node:net";
import { excerpt } from "connect-transcoder/excerpt";
import { hostInUrl, hostOfUrl } from "./address.ts";

/** Returns why a request is refused, as words that follow "Host: "; undefined if it is allowed. */
export type HostCheck = (request: Pick<IncomingMessage, "headers" | "url">) => string | undefined;

/**
 * Allows requests whose host is localhost, a name below it, a loopback address or one of these names and addresses, with
 * any port.
 * A request without a host (HTTP/1.0) comes from no web page and is allowed. A malformed host is refused elsewhere.
 */
export function createHostCheck(allowed: readonly string[]): HostCheck {
  const names = new Set(allowed.map((host) => nameIn(hostInUrl(host))));
  // Most requests repeat the last host, and comparing the text costs less than parsing it as a URL.
  let known: unknown;
  return ({ headers }) => {
    const host = headers[":authority"] ?? headers.host;
    if (host === known) return undefined;
    const name = typeof host === "string" ? nameIn(host) : undefined;
    if (name === undefined || names.has(name) || isLoopback(name)) {
      known = host;
      return undefined;
    }
    return (
      `this server does not answer to ${excerpt(name)}. ` +
      "Use localhost or an address of this machine, or let the operator add the name to ALLOWED_HOSTS."
    );
  };
}

/** A name or address as a URL writes it: in lower case, without port, brackets and trailing dot. */
function nameIn(host: string): string | undefined {
  const url = URL.parse(`http://${host}`);
  return url ? hostOfUrl(url).replace(/\.$/, "") : undefined;
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/**
 * Whether a name or address means this machine alone: localhost and all names below it do (RFC 6761, 6.3). An IPv4-mapped
 * IPv6 address counts as its IPv4 address.
 */
export const isLoopback = (host: string): boolean =>
  /(?:^|\.)localhost\.?$/i.test(host) || loopback.check(host, isIPv6(host) ? "ipv6" : "ipv4");
