/** What counts as one caller, where only its address is known. */
import { isIPv6 } from "node:net";

/** Turns an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) into the IPv4 address; returns any other as it is. */
export const plainAddress = (address: string): string => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;

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
