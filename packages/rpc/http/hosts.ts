/** The hosts of a request: the one that is asked, and the one that asks. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";
import { excerpt } from "connect-transcoder/excerpt";
import { hostInTarget, withBrackets } from "connect-transcoder/http";
import parseForwarded from "forwarded-parse";
import { hostInUrl, hostOfUrl, isLoopback } from "./address.ts";

/**
 * Puts in place the host that counts: that of the target, if it names one (RFC 9112 section 3.2.2); one where HTTP/1.0 leaves
 * it out (section 3.3); and with the brackets that Node's HTTP/2 client leaves out of an IPv6 address.
 */
export function mendHost({ httpVersionMajor, headers, url }: IncomingMessage): void {
  const { ":authority": authority } = headers;
  if (httpVersionMajor === 1) headers.host = hostInTarget(url) ?? headers.host ?? "localhost";
  else if (typeof authority === "string") headers[":authority"] = withBrackets(authority);
}

/** Returns why a request is refused, as words that follow "Host: "; undefined if it is allowed. */
export type HostCheck = (request: Pick<IncomingMessage, "headers" | "url">) => string | undefined;

/**
 * Checks which host names a server answers to, against DNS rebinding: a web page can point its own name at this machine and
 * then call a server here as its own origin. The browser still sends the page's name as the host.
 *
 * Allows requests whose host is localhost, a name below it, a loopback address or one of these names and addresses, with
 * any port. One without a host (HTTP/1.0) comes from no web page and is allowed. A malformed host is refused elsewhere.
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

/** A network, or a single address as a network with all its bits. */
export interface Network {
  readonly address: string;
  readonly bits: number;
}

/** How many hops are examined: a caller can write as many as fit into the header. */
const MAX_HOPS = 32;

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

export interface CallerAddress {
  (request: Received): string;
  /** Whether a trusted proxy has sent it. Absent where there is none. */
  readonly isProxy?: (request: Received) => boolean;
}

/**
 * Follows `Forwarded` (RFC 7239) or `X-Forwarded-For` backwards, from one trusted proxy to the next, to the first address
 * that is not a trusted proxy. If both headers are there and disagree, the caller may have forged one: then the address of
 * the nearest proxy counts. An IPv6 address counts as its network of 64 bits, which is what one customer has.
 */
export function callerAddress(trusted: readonly Network[]): CallerAddress {
  const list = new BlockList();
  for (const { address, bits } of trusted) list.addSubnet(address, bits, family(address));
  const isTrusted = (address: string) => list.check(address, family(address));
  const nearest = (hops: readonly string[], from: string): string => {
    let nearest = from;
    for (const hop of hops.slice(-MAX_HOPS).reverse()) {
      if (!isTrusted(nearest) || isIP(hop) === 0) break;
      nearest = plainAddress(hop);
    }
    return nearest;
  };
  const own: CallerAddress = ({ socket }) => callerNetwork(socket.remoteAddress);
  if (trusted.length === 0) return own;
  const isProxy = ({ socket }: Received) => isTrusted(plainAddress(socket.remoteAddress ?? ""));
  const behindProxies: CallerAddress = ({ headers, socket }) => {
    const remote = plainAddress(socket.remoteAddress ?? "");
    if (!isTrusted(remote)) return callerNetwork(remote);
    const named = [forwardedHops(headers.forwarded), listedHops(headers["x-forwarded-for"])].flatMap((hops) =>
      hops ? [nearest(hops, remote)] : [],
    );
    const [address = remote] = named;
    return callerNetwork(named.every((one) => one === address) ? address : remote);
  };
  return Object.assign(behindProxies, { isProxy });
}

const family = (address: string): "ipv4" | "ipv6" => (isIPv6(address) ? "ipv6" : "ipv4");

function forwardedHops(header: string | undefined): string[] | undefined {
  if (header === undefined) return undefined;
  try {
    return parseForwarded(header).map((hop) => withoutPort(hop.for ?? ""));
  } catch {
    return [];
  }
}

const listedHops = (header: string | readonly string[] | undefined): string[] | undefined =>
  header === undefined ? undefined : `${header}`.split(",").map((hop) => withoutPort(hop.trim()));

/** The address in `192.0.2.1:4711`, `[2001:db8::1]:4711` or `[2001:db8::1]`. */
const withoutPort = (hop: string): string =>
  /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;

/** Turns an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) into the IPv4 address; returns any other as it is. */
const plainAddress = (address: string): string => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;

/** An IPv4 address as it is; for IPv6 the /64 network, always in the same notation. Empty for a connection that is closed. */
export function callerNetwork(remoteAddress: string | undefined): string {
  const address = plainAddress(remoteAddress ?? "");
  if (!isIPv6(address)) return address;
  const [head = "", tail] = (address.split("%")[0] as string).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length - (right.at(-1)?.includes(".") ? 1 : 0);
  const groups = [...left, ...Array.from({ length: zeros }, () => "0"), ...right];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
