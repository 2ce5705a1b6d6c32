import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import * as environment from "./environment.ts";
import { type Format, optional, readEnvironment, required, withDefault } from "./environment.ts";

const { duration, host, instant, integer, list, mongodbUri, oneOf, path, secret, text, url } = environment;
const reads = <T>(format: Format<T>, value: string) => readEnvironment({ X: value }, { X: optional(format) }).X;

describe("formats", () => {
  test.each<[string, string, Format<unknown>, unknown]>([
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
    ["oneOf", "b", oneOf("a", "b"), "b"],
    ["text", "  around it  ", text, "around it"],
    ["path", "data", path, "data"],
    ["path", "/srv/pet store/~backup", path, "/srv/pet store/~backup"],
    ["path", "./~/data", path, "./~/data"],
    ["path", "C:\\data", path, "C:\\data"],
    ["list", "1, 2,3", list(integer(0, 9)), [1, 2, 3]],
    ["url", "https://example.org:8443/", url, "https://example.org:8443"],
    ["host", "::1", host, "::1"],
    ["host", "fe80::1%eth0", host, "fe80::1%eth0"],
    ["host", "pets.example.org", host, "pets.example.org"],
    ["host", "pets.example.org.", host, "pets.example.org."],
  ])("%s reads %s", (_, value, format, expected) => {
    expect(reads(format, value)).toEqual(expected);
  });

  test.each<[string, string, Format<unknown>]>([
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
    ["oneOf", "A", oneOf("a", "b")],
    ["path", "~/petstore", path],
    ["path", "~", path],
    ["path", "~me/petstore", path],
    ["path", "$HOME/petstore", path],
    ["path", "file:/tmp/f", path],
    ["path", "file:f", path],
    ["path", "FILE:///tmp/f", path],
    ["path", "https://example.org/keys.json", path],
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
  ])("%s refuses %s", (_, value, format) => {
    expect(() => reads(format, value)).toThrow(/^X.* is wrong: it must be /);
  });
});

test("an empty or blank variable is not set", () => {
  const settings = { X: withDefault(integer(0, 9), 5) };
  for (const X of [undefined, "", "  "]) expect(readEnvironment({ X }, settings).X).toBe(5);
});

test.each([`"8080"`, `'8080'`, `""`, ` "8080" `])("a value in quotes, %s, is told as such, without it", (X) => {
  const act = () => readEnvironment({ X, Y: X }, { X: optional(text), Y: optional(secret(1)) });
  expect(act).toThrow(/^X is in quotes, which are part of it: leave them out\..*\nY is in quotes.*/);
  expect(act).not.toThrow("8080");
  expect(() => readEnvironment({ Y_FILE: X }, { Y: optional(secret(1)) })).toThrow(/^Y_FILE is in quotes/);
});

test("a quote alone is a text like any other", () => {
  for (const X of [`"`, `"a'`, `it's`, `a "b"`]) expect(readEnvironment({ X }, { X: optional(text) }).X).toBe(X);
});

test("what is required must be set", () => {
  expect(() => readEnvironment({}, { X: required(text) })).toThrow("X is not set: it must be a text.");
});

test("a wrong secret is told without its text", () => {
  for (const format of [secret(99), mongodbUri])
    expect(() => reads(format, "hunter2")).toThrow(/^X is wrong(?!.*hunter2)/);
});

describe("a secret in a file", () => {
  const settings = { X: required(secret(8)) };
  const fileOf = (content: string) => {
    const dir = mkdtempSync(join(tmpdir(), "secret-"));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const path = join(dir, "x");
    writeFileSync(path, content);
    return path;
  };

  test("is read without the line feed at its end", () => {
    expect(readEnvironment({ X_FILE: fileOf("hunter2hunter2\n") }, settings).X.reveal()).toBe("hunter2hunter2");
    expect(readEnvironment({ X_FILE: fileOf("\ufeffhunter2hunter2\r\n") }, settings).X.reveal()).toBe("hunter2hunter2");
    expect(readEnvironment({ X_FILE: " ", X: "hunter2hunter2" }, settings).X.reveal()).toBe("hunter2hunter2");
  });

  test.each<[string, () => Record<string, string>, string]>([
    [
      "that is wrong",
      () => ({ X_FILE: fileOf("hunter2") }),
      "X, read from the file that X_FILE names, is wrong: it must",
    ],
    ["that is empty", () => ({ X_FILE: fileOf("\n") }), "X, read from the file that X_FILE names, is wrong: it must"],
    ["that is not there", () => ({ X_FILE: "/hunter2" }), "X_FILE names a file that can't be read (ENOENT)."],
    ["below ~", () => ({ X_FILE: "~/hunter2" }), "X_FILE is wrong: it must be a path such as"],
    ["that is a directory", () => ({ X_FILE: tmpdir() }), "X_FILE names a file that can't be read (EISDIR)."],
    [
      "and in the variable",
      () => ({ X_FILE: fileOf("hunter2hunter2"), X: "hunter2hunter2" }),
      "X and X_FILE are both set",
    ],
  ])("%s is told without its text", (_, environment, problem) => {
    const read = () => readEnvironment(environment(), settings);
    expect(read).toThrow(problem);
    expect(read).not.toThrow("hunter2");
  });

  test("is for secrets alone", () => {
    expect(readEnvironment({ X_FILE: fileOf("plain") }, { X: optional(text) }).X).toBeUndefined();
  });
});
