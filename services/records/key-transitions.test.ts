import { describe, expect, test } from "vitest";
import { claim, KEYS, type KeyDoc, renew, replace } from "./key-transitions.ts";

const claimed = { _id: "k", recordId: 7, fingerprint: "f", hour: 500_000 };
const key: KeyDoc = { ...claimed, rev: 3 };

test("a key is as the store reads it", () => {
  expect(KEYS.document?.(key)).toBeUndefined();
});

describe("claim", () => {
  test("claims a key that is not claimed", () => {
    expect(claim(claimed)(undefined, 1)).toEqual({ action: "put", doc: claimed, result: claimed });
  });
  test.each([claimed, { ...claimed, fingerprint: "other" }, { ...claimed, recordId: 8 }])(
    "leaves a claimed key, which is the result, to what it is bound to: %j",
    (other) => {
      expect(claim(other)(key, 4)).toEqual({ action: "keep", result: key });
    },
  );
});

describe("replace", () => {
  test("names the fresh record, keeps the body, and begins the key's time anew", () => {
    expect(replace(7, 9, 500_001)(key, 4)).toMatchObject({
      action: "put",
      doc: { ...claimed, recordId: 9, hour: 500_001 },
    });
  });
  test.each([undefined, { ...key, recordId: 8 }])("leaves a key that does not name the former record: %j", (doc) => {
    expect(replace(7, 9, 500_001)(doc, 4)).toMatchObject({ action: "keep" });
  });
});

describe("renew", () => {
  test("begins the key's time anew, and changes nothing else", () => {
    expect(renew(7, 500_001)(key, 4)).toMatchObject({
      action: "put",
      doc: { ...claimed, hour: 500_001 },
      result: true,
    });
  });
  test.each([undefined, { ...key, recordId: 8 }])("leaves a key that does not name the record: %j", (doc) => {
    expect(renew(7, 500_001)(doc, 4)).toEqual({ action: "keep", result: false });
  });
});
