import { describe, expect, test } from "vitest";
import * as environment from "./environment.ts";
import { type Kind, optional, readEnvironment, required, withDefault } from "./environment.ts";

const { boolean, duration, host, instant, integer, list, mongodbUri, oneOf, secret, text, url } = environment;
const reads = <T>(kind: Kind<T>, value: string) => readEnvironment({ X: value }, { X: optional(kind) }).X;

describe("kinds", () => {
  test.each<[string, string, Kind<unknown>, unknown]>([
    ["integer", "-5", integer(-5, 10), -5],
    ["integer", "10", integer(0, 10), 10],
    ["duration", "250ms", duration("1ms", "7d"), 250],
    ["duration", "10s", duration("1ms", "7d"), 10_000],
    ["duration", "5m", duration("1ms", "7d"), 300_000],
    ["duration", "24h", duration("1ms", "7d"), 86_400_000],
    ["duration", "7d", duration("1ms", "7d"), 604_800_000],
    ["instant", "2027-12-31T23:59:59Z", instant, Date.UTC(2027, 11, 31, 23, 59, 59)],
    ["instant", "2027-12-31T23:59:59+01:00", instant, Date.UTC(2027, 11, 31, 22, 59, 59)],
    ["instant", "2027-12-31", instant, Date.UTC(2027, 11, 31)],
    ["boolean", "true", boolean, true],
    ["boolean", "false", boolean, false],
    ["oneOf", "b", oneOf("a", "b"), "b"],
    ["text", "  around it  ", text, "around it"],
    ["list", "1, 2,3", list(integer(0, 9)), [1, 2, 3]],
    ["url", "https://example.org:8443/", url, "https://example.org:8443"],
    ["host", "::1", host, "::1"],
    ["host", "fe80::1%eth0", host, "fe80::1%eth0"],
    ["host", "pets.example.org", host, "pets.example.org"],
    ["host", "pets.example.org.", host, "pets.example.org."],
  ])("%s reads %s", (_, value, kind, expected) => {
    expect(reads(kind, value)).toEqual(expected);
  });

  test.each<[string, string, Kind<unknown>]>([
    ["integer", "11", integer(0, 10)],
    ["integer", "-1", integer(0, 10)],
    ["integer", "1.5", integer(0, 10)],
    ["integer", "0x1", integer(0, 10)],
    ["integer", "1e1", integer(0, 10)],
    ["duration", "999ms", duration("1s", "1m")],
    ["duration", "61s", duration("1s", "1m")],
    ["duration", "10", duration("1s", "1m")],
    ["duration", "1.5s", duration("1s", "1m")],
    ["instant", "31.12.2027", instant],
    ["instant", "2027-13-01", instant],
    ["instant", "2027-02-30", instant],
    ["instant", "2027-02-30T00:00:00Z", instant],
    ["instant", "2027-12-31T23:59:59", instant],
    ["instant", "2027-12-31T24:00:00Z", instant],
    ["boolean", "yes", boolean],
    ["boolean", "toString", boolean],
    ["oneOf", "A", oneOf("a", "b")],
    ["list", "1,,2", list(integer(0, 9))],
    ["url", "127.0.0.1:8081", url],
    ["url", "ftp://example.org", url],
    ["url", "http://example.org/path", url],
    ["url", "http://user:password@example.org", url],
    ["host", "http://example.org", host],
    ["host", "999.1.1.1", host],
    ["host", "-a", host],
    ["host", "a-", host],
    ["host", "a..b", host],
    ["host", `${"a.".repeat(126)}ab`, host],
    ["host", "a".repeat(64), host],
    ["secret", "abc", secret(4)],
    ["secret", "a b c", secret(4)],
    ["mongodbUri", "http://example.org", mongodbUri],
  ])("%s refuses %s", (_, value, kind) => {
    expect(() => reads(kind, value)).toThrow(/^X.* is wrong: it must be /);
  });
});

test("an empty or blank variable is not set", () => {
  const settings = { X: withDefault(integer(0, 9), 5) };
  for (const X of [undefined, "", "  "]) expect(readEnvironment({ X }, settings).X).toBe(5);
});

test("what is required must be set", () => {
  expect(() => readEnvironment({}, { X: required(text) })).toThrow("X is not set: it must be a text.");
});

test("a wrong secret is told without its text", () => {
  for (const kind of [secret(99), mongodbUri]) expect(() => reads(kind, "hunter2")).toThrow(/^X is wrong(?!.*hunter2)/);
});
