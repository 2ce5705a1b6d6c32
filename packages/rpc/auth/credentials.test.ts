import { expect, test } from "vitest";
import { credentialFrom, InvalidCredential, keepRepeated } from "./credentials.ts";

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
