/** The address of a request's caller, also behind proxies that the operator trusts. */
import type { IncomingHttpHeaders } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";
import parseForwarded from "forwarded-parse";

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
  header === undefined
    ? undefined
    : [header]
        .flat()
        .join(",")
        .split(",")
        .map((hop) => withoutPort(hop.trim()));

/** The address in `192.0.2.1:4711`, `[2001:db8::1]:4711` or `[2001:db8::1]`. */
const withoutPort = (hop: string): string =>
  /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;

/** Turns an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) into the IPv4 address; returns any other as it is. */
const plainAddress = (address: string): string => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;

/**
 * An IPv4 address as it is; for IPv6 the /64 network, which is what one customer has, always in the same notation. Empty for
 * a connection that is already closed.
 */
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
