import { expect, test } from "vitest";
import { bearsName } from "./certificates.ts";

const NAMES = ["spiffe://library/process", "shelf.internal"];

test.each([
  ["URI:spiffe://library/process", true],
  ["DNS:localhost, IP Address:127.0.0.1, URI:spiffe://library/process", true],
  ["DNS:shelf.internal", true],
  ["URI:spiffe://library/process/more", false],
  ["URI:spiffe://library", false],
  ["DNS:spiffe, DNS:library", false],
  ["email:shelf.internal", false],
  ["DNS:*.internal", false],
  // Names that only look like several, as Node writes them.
  ['URI:"http://a/, URI:spiffe://library/process"', false],
  ['DNS:"a\\", DNS:shelf.internal"', false],
  ['URI:"http://a/, URI:spiffe://library/process, b"', false],
  ['DNS:"a\\", DNS:shelf.internal, b"', false],
  ['DNS:"a, b", URI:spiffe://library/process', true],
  ["", false],
  [undefined, false],
])("%s", (subjectAltName, expected) => {
  expect(bearsName({ subjectAltName }, NAMES)).toBe(expected);
});
