import { expect, test } from "vitest";
import {
  credentialFrom,
  formatApiKey,
  hashOf,
  InvalidCredential,
  isApiKey,
  keepRepeated,
  newApiKey,
  parseApiKey,
} from "./credentials.ts";

const from = (authorization?: string, apiKey?: string) => credentialFrom({ authorization, apiKey });

test.each([
  ["Bearer abc", { field: "authorization", text: "abc" }],
  ["bearer   a.b-c_d~e+f/g==", { field: "authorization", text: "a.b-c_d~e+f/g==" }],
])("Authorization: %s", (authorization, credential) => {
  expect(from(authorization)).toEqual(credential);
});

test("X-API-Key takes what stands in it, and nothing at all is no credential", () => {
  expect(from(undefined, "psk_x")).toEqual({ field: "x-api-key", text: "psk_x" });
  expect(from()).toBeUndefined();
});

test.each([
  ["", undefined],
  ["Bearer", undefined],
  ["Bearer ", undefined],
  ["abc", undefined],
  ["Basic YTpi", undefined],
  ["Bearer a b", undefined],
  ["Bearer a, Bearer a", undefined],
  ["Bearer a,Bearer b", undefined],
  ["Bearer ä", undefined],
  ["Bearer a", "a"],
  ["", ""],
  [`Bearer ${"a".repeat(8 * 1024)}`, undefined],
  [undefined, "a".repeat(8 * 1024 + 1)],
])("refused: Authorization: %s, X-API-Key: %s", (authorization, apiKey) => {
  expect(() => from(authorization, apiKey)).toThrow(InvalidCredential);
});

test("a field that came twice keeps both values, however it is written", () => {
  const headers = { authorization: "Bearer a" };
  keepRepeated({
    headers,
    rawHeaders: ["Authorization", "Bearer a", "x", "authorization", "AUTHORIZATION", "Bearer b"],
  });
  expect(headers).toEqual({ authorization: "Bearer a, Bearer b" });
});

const key = newApiKey();
const text = formatApiKey(key);

test("a key is read back as it was made, with 256 bits of its own", () => {
  expect(text).toMatch(/^psk_[\da-f]{12}_[\da-f]{72}$/);
  expect(parseApiKey(text)).toEqual(key);
  expect(Buffer.from(key.secret, "hex")).toHaveLength(32);
  expect(new Set(Array.from({ length: 100 }, () => newApiKey().secret)).size).toBe(100);
  expect([isApiKey(text), isApiKey("eyJhbGciOiJub25lIn0.e30.")]).toEqual([true, false]);
});

test("one wrong digit, wherever it is, is told as a typo, and two that changed places too", () => {
  for (let i = "psk_".length; i < text.length; i++) {
    if (text[i] === "_") continue;
    const wrong = text.slice(0, i) + (text[i] === "0" ? "1" : "0") + text.slice(i + 1);
    expect(() => parseApiKey(wrong), wrong).toThrow("mistyped");
    const swapped = text.slice(0, i) + (text[i + 1] ?? "") + text[i] + text.slice(i + 2);
    if (swapped !== text && /^psk_\w{12}_\w{72}$/.test(swapped) && swapped[16] === "_")
      expect(() => parseApiKey(swapped), swapped).toThrow("mistyped");
  }
});

test.each(["", "psk_", text.slice(0, -1), `${text}0`, text.toUpperCase(), `${text}\n`, ` ${text}`])(
  "%j is no complete key",
  (wrong) => {
    expect(() => parseApiKey(wrong)).toThrow("not complete");
  },
);

test("what is stored of a secret is its SHA-256 and nothing of it", () => {
  // Of `printf abc | sha256sum`.
  expect(hashOf("abc").toString("hex")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
