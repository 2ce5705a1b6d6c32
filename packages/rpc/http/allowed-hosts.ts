/**
 * Which names a server answers to, against DNS rebinding: a page can let its own name point at this machine, and then call
 * what listens here as its own origin. The browser still says the name that the page has.
 */
import type { IncomingMessage } from "node:http";
import { BlockList, isIPv6 } from "node:net";
import { excerpt } from "connect-transcoder/validation/excerpt";

/** Why a request is refused, in words that follow the name of its host; undefined when it is not. */
export type HostCheck = (request: Pick<IncomingMessage, "headers">) => string | undefined;

/**
 * Lets requests through that name localhost, a loopback address or one of these names and addresses, with any port.
 * What names nobody (HTTP/1.0) comes from no page, and what is no host is judged elsewhere.
 */
export function createHostCheck(allowed: readonly string[]): HostCheck {
  const names = new Set(allowed.map((host) => nameIn(isIPv6(host) ? `[${host}]` : host)));
  // Callers say the same again and again, and to read it as a URL costs more than to look whether it is.
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

/** In the one notation that URLs have for a name or address: in small letters, without port, brackets and last dot. */
const nameIn = (host: string): string | undefined =>
  URL.parse(`http://${host}`)
    ?.hostname.replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/** Whether only this machine is meant by a name or address. An IPv4 address within IPv6 counts as what it is. */
export const isLoopback = (host: string): boolean =>
  host.toLowerCase() === "localhost" || loopback.check(host, isIPv6(host) ? "ipv6" : "ipv4");
