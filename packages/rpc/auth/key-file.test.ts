import { describe, expect, test } from "vitest";
import { hashOf, parseApiKey } from "./credentials.ts";
import { createKey, formatKeyFile, KeyFileError, noKeys, parseKeyFile, revokeKey, rotateKey } from "./key-file.ts";

const expires = new Date("2030-01-02T03:04:05.000Z");
const ci = createKey(noKeys, { name: "ci", scopes: ["books:read", "shelves:*"], expires });
const hashIn = (key: string) => hashOf(parseApiKey(key).secret).toString("hex");

test("a key that is created stands in the file by its hash", () => {
  const entry = { id: ci.id, name: "ci", hash: hashIn(ci.key), scopes: ["books:read", "shelves:*"] };
  expect(ci.content).toEqual({ keys: [{ ...entry, expires: "2030-01-02T03:04:05.000Z" }] });
  expect(formatKeyFile(ci.content)).not.toContain(parseApiKey(ci.key).secret);
  expect(parseKeyFile(formatKeyFile(ci.content))).toEqual(ci.content);
});

test("a key that is rotated keeps all but its secret", () => {
  const rotated = rotateKey(ci.content, ci.id);
  expect(rotated.key).not.toBe(ci.key);
  expect(parseApiKey(rotated.key).id).toBe(ci.id);
  expect(rotated.content.keys).toEqual([{ ...ci.content.keys[0], hash: hashIn(rotated.key) }]);
});

test("a key that is revoked is gone, and the others stay, with members that a later version added", () => {
  const two = createKey(ci.content, { name: "shop", scopes: ["*"], expires: undefined });
  const later = parseKeyFile(JSON.stringify({ format: 2, keys: two.content.keys.map((key) => ({ ...key, tier: 3 })) }));
  const left = revokeKey(later, ci.id);
  expect(left).toEqual({ format: 2, keys: [{ ...two.content.keys[1], tier: 3 }] });
  expect(() => revokeKey(left, ci.id)).toThrow(KeyFileError);
  expect(() => rotateKey(left, ci.id)).toThrow(KeyFileError);
});

test.each(["", "books", "books:", ":read", "books:read pets:read", "BOOKS:read", "*:read"])(
  "%j is no scope",
  (scope) => {
    expect(() => createKey(noKeys, { name: "ci", scopes: [scope], expires: undefined })).toThrow(KeyFileError);
  },
);

describe("a file that can't be used says where", () => {
  const [entry] = ci.content.keys;
  test.each([
    ["{", "it is not JSON"],
    ["[]", "expected object"],
    ["{}", "keys"],
    [JSON.stringify({ keys: [{ ...entry, hash: "abc" }] }), "keys[0].hash: must be 64 hexadecimal digits"],
    [JSON.stringify({ keys: [{ ...entry, id: "../x" }] }), "keys[0].id: must be 12 hexadecimal digits"],
    [JSON.stringify({ keys: [{ ...entry, expires: "soon" }] }), "keys[0].expires"],
    [JSON.stringify({ keys: [{ ...entry, scopes: "*" }] }), "keys[0].scopes"],
    [JSON.stringify({ keys: [{ ...entry, rate: "fast" }] }), "keys[0].rate: must be a rate such as 600/min"],
    [JSON.stringify({ keys: [entry, entry] }), "two keys have the same id"],
  ])("%s", (text, problem) => {
    expect(() => parseKeyFile(text)).toThrow(KeyFileError);
    expect(() => parseKeyFile(text)).toThrow(problem);
  });
});
