import fc from "fast-check";
import { expect, test } from "vitest";
import { isNamed, parseAccept, weightOf } from "./media.ts";

const JSON_TYPE = "application/json";
const weight = (accept: string | undefined) => weightOf(parseAccept(accept), JSON_TYPE);

test.each([
  [undefined, 1],
  ["", 1],
  [" ", 1],
  ["*/*", 1],
  ["application/json", 1],
  ["APPLICATION/JSON;Q=0.5", 0.5],
  ["application/json ; q=0.5 ; x=1", 0.5],
  ["application/json;q=.25", 0.25],
  ["application/json;q=7", 1],
  ['application/json;charset="UTF-8";q=0.5', 0.5],
  ["text/html, application/*;q=0.1", 0.1],
  ["application/json;q=0, */*", 0],
  ["*/*, application/json;q=0", 0],
  ["*/*;q=0.1, application/*;q=0.2, application/json;q=0.3", 0.3],
  ["application/json;q=0.3, application/json;q=0.6", 0.6],
  ['text/html;x="a, application/json;q=0.1", application/json;q=0.9', 0.9],
  ['text/html;x="\\", application/json;q=0.1", application/json;q=0.9', 0.9],
])("Accept: %s gives JSON the weight %s", (accept, expected) => {
  expect(weight(accept)).toBe(expected);
});

test.each([
  "text/html",
  "nonsense",
  "application/json+x",
  "application/json;version=2",
  "application/json;q=high",
  "application/json;q=",
  'text/html;x="unfinished, application/json',
  ",,",
  "*/json",
])("Accept: %s is not about JSON", (accept) => {
  expect(weight(accept)).toBeUndefined();
});

test("a wildcard names no type", () => {
  expect(isNamed(parseAccept("application/*, */*"), JSON_TYPE)).toBe(false);
  expect(isNamed(parseAccept("application/JSON;q=0.1"), JSON_TYPE)).toBe(true);
});

test("whatever is sent is read", () => {
  const sign = fc.constantFrom(...'aq=0.,;/* "\\\t');
  fc.assert(
    fc.property(fc.string({ unit: sign }), (accept) => {
      for (const { weight } of parseAccept(accept)) expect(weight).toSatisfy((q: number) => q >= 0 && q <= 1);
    }),
  );
});
