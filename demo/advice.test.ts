import { PetstoreError } from "@petstore/client";
import { expect, test } from "vitest";
import { advice } from "./advice.ts";

const url = "http://127.0.0.1:8080";

test.each([
  ["UNREACHABLE", /^No petstore answers at http:\/\/127\.0\.0\.1:8080 \(it is so\)\.\nStart one with npm start/],
  ["UNAUTHENTICATED", /wants another credential: it is so\nPut into CREDENTIAL what npm run -s keys/],
  ["PERMISSION_DENIED", /wants another credential: it is so\nPut into CREDENTIAL/],
  ["INTERNAL", /refused \(INTERNAL\): it is so$/],
])("%s", (code, words) => expect(advice(new PetstoreError(code, "it is so"), url)).toMatch(words));

test("a mistake in the program is none of the petstore's", () => {
  expect(() => advice(new TypeError("x is not a function"), url)).toThrow(TypeError);
});
