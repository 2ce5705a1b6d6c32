import { readEnvironment, withDefault } from "@petstore/runtime/environment";
import { describe, expect, test } from "vitest";
import { proxies } from "../../../processes/config.ts";
import { callerAddress } from "./caller-address.ts";

const PROXY = "10.0.0.1";
const read = (text: string) => readEnvironment({ P: text }, { P: withDefault(proxies, []) }).P;
const of = (trusted: string[], remoteAddress: string, headers: Record<string, string> = {}) =>
  callerAddress(read(trusted.join()))({ headers, socket: { remoteAddress } });
const behind = (headers: Record<string, string>) => of(["10.0.0.0/8", "2001:db8:1::/48"], PROXY, headers);

test("without proxies it is the other end of the connection, whatever the headers say", () => {
  const headers = { forwarded: "for=192.0.2.1", "x-forwarded-for": "192.0.2.1" };
  expect(of([], "198.51.100.7", headers)).toBe("198.51.100.7");
  expect(of([PROXY], "198.51.100.7", headers)).toBe("198.51.100.7");
});

describe("behind a trusted proxy it is", () => {
  test.each<[string, Record<string, string>, string]>([
    ["the one that the proxy names", { "x-forwarded-for": "192.0.2.1" }, "192.0.2.1"],
    ["the same in the standard's field", { forwarded: "for=192.0.2.1;proto=https" }, "192.0.2.1"],
    ["with a port", { forwarded: 'for="192.0.2.1:4711"' }, "192.0.2.1"],
    ["the last that no trusted proxy has", { "x-forwarded-for": "1.1.1.1, 192.0.2.1, 10.9.9.9" }, "192.0.2.1"],
    ["so also in the standard's field", { forwarded: "for=1.1.1.1, for=192.0.2.1, for=10.9.9.9" }, "192.0.2.1"],
    ["a network of IPv6", { forwarded: 'for="[2001:db8:cafe:7::17]:4711"' }, "2001:db8:cafe:7::/64"],
    ["itself, when it names nobody", {}, PROXY],
    ["itself, when it hides who it was", { forwarded: "for=_hidden" }, PROXY],
    ["itself, when the field is no list of hops", { forwarded: "for=192.0.2.1;;=" }, PROXY],
    [
      "itself, when two fields differ: a caller may have sent one",
      { forwarded: "for=1.1.1.1", "x-forwarded-for": "192.0.2.1" },
      PROXY,
    ],
    ["the one in both fields", { forwarded: "for=192.0.2.1", "x-forwarded-for": "192.0.2.1" }, "192.0.2.1"],
    ["the last proxy of too many", { "x-forwarded-for": `192.0.2.1${", 10.1.1.1".repeat(40)}` }, "10.1.1.1"],
  ])("%s", (_, headers, expected) => expect(behind(headers)).toBe(expected));
});

test.each([
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8::9", "2001:db8:0:0::/64"],
])("%s counts as %s", (peer, expected) => expect(of([], peer)).toBe(expected));
