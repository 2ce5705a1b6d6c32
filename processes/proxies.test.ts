import { readEnvironment, withDefault } from "@petstore/runtime/environment";
import { expect, test } from "vitest";
import { proxies } from "./config.ts";

const read = (text: string) => readEnvironment({ P: text }, { P: withDefault(proxies, []) }).P;

test("addresses and networks", () => {
  expect(read("10.0.0.1, 10.0.0.0/8,2001:db8::/32")).toEqual([
    { address: "10.0.0.1", bits: 32 },
    { address: "10.0.0.0", bits: 8 },
    { address: "2001:db8::", bits: 32 },
  ]);
});

test.each(["proxy.example", "10.0.0.0/33", "10.0.0.0/8/8", "10.0.0.0/", "::/129", "10.0.0"])("not %s", (text) => {
  expect(() => read(text)).toThrow(/must be a comma-separated list, each of them an IP address or a network/);
});
