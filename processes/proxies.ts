/** The setting of the proxies that are trusted. Apart from what reads their headers, which the launcher need not load. */
import { isIP, isIPv6 } from "node:net";
import type { Network } from "@petstore/rpc/http/caller-address";
import { type Kind, kind, list } from "@petstore/runtime/environment";

const network: Kind<Network> = kind("an IP address or a network such as 10.0.0.0/8", (text) => {
  const [address = "", bits, more] = text.split("/");
  const most = isIPv6(address) ? 128 : 32;
  const isNetwork = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
  if (isIP(address) === 0 || !isNetwork || more !== undefined) return undefined;
  return { address, bits: bits === undefined ? most : Number(bits) };
});

/** Addresses and networks of proxies. */
export const proxies: Kind<readonly Network[]> = list(network);
