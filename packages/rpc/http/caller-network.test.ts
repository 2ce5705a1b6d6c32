import { expect, test } from "vitest";
import { callerNetwork } from "./caller-address.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:0:0:1:2:3:4", "2001:db8:0:0::/64"],
  ["2001:0DB8::9", "2001:db8:0:0::/64"],
  ["2001:db8::9", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["64:ff9b::192.0.2.33", "64:ff9b:0:0::/64"],
  [undefined, ""],
])("%s counts as %s", (address, expected) => expect(callerNetwork(address)).toBe(expected));
