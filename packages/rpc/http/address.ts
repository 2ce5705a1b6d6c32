/** Addresses: put together from their parts, and taken apart. A URL writes an IPv6 address in brackets, a socket does not. */
import { BlockList, isIPv6 } from "node:net";

/** A name or address, as it stands in a URL. */
export const hostInUrl = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

/** The host of a URL, as a socket takes it. */
export const hostOfUrl = ({ hostname }: Pick<URL, "hostname">): string => hostname.replace(/^\[(.*)\]$/, "$1");

export const hostAndPort = (host: string, port: number): string => `${hostInUrl(host)}:${port}`;

/** Where this machine reaches a server that listens on `host`, which may stand for all of its addresses. */
export function reachable(host: string): string {
  const hostname = URL.parse(`http://${hostInUrl(host)}`)?.hostname; // in one notation, where IPv6 has many
  return hostname === "0.0.0.0" || hostname === "[::]" ? "127.0.0.1" : host;
}

/** The address by which this machine reaches a server that listens on `host`. */
export const origin = (host: string, port: number, scheme: "http" | "https" = "http"): string =>
  `${scheme}://${hostAndPort(reachable(host), port)}`;

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/**
 * Whether a name or address means this machine alone: localhost and all names below it do (RFC 6761, 6.3). An IPv4-mapped
 * IPv6 address counts as its IPv4 address.
 */
export const isLoopback = (host: string): boolean =>
  /(?:^|\.)localhost\.?$/i.test(host) || loopback.check(host, isIPv6(host) ? "ipv6" : "ipv4");
