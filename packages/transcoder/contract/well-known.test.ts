import fc from "fast-check";
import { expect, test } from "vitest";
import { formatTimestamp, parseTimestamp } from "./well-known.ts";

const through = (text: string) => {
  const parsed = parseTimestamp(text);
  return parsed && formatTimestamp(parsed);
};

test.each([
  ["2027-12-31T23:59:59Z", "2027-12-31T23:59:59Z"],
  ["2027-12-31t23:59:59z", "2027-12-31T23:59:59Z"],
  ["2027-12-31T23:59:59.120Z", "2027-12-31T23:59:59.120Z"],
  ["2027-12-31T23:59:59.1Z", "2027-12-31T23:59:59.100Z"],
  ["2027-12-31T23:59:59.000001Z", "2027-12-31T23:59:59.000001Z"],
  ["2027-12-31T23:59:59.123456789+05:30", "2027-12-31T18:29:59.123456789Z"],
  ["2028-02-29T00:30:00-01:00", "2028-02-29T01:30:00Z"],
  ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"],
  ["0099-06-01T00:00:00Z", "0099-06-01T00:00:00Z"],
  ["9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"],
  ["1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"],
  ["0000-12-31T23:30:00-01:00", "0001-01-01T00:30:00Z"],
])("%s is %s", (text, shown) => {
  expect(through(text)).toBe(shown);
});

test.each([
  "2027-02-29T00:00:00Z",
  "2100-02-29T00:00:00Z",
  "2027-04-31T00:00:00Z",
  "2027-13-01T00:00:00Z",
  "2027-00-01T00:00:00Z",
  "2027-01-00T00:00:00Z",
  "2027-01-01T24:00:00Z",
  "2027-01-01T00:60:00Z",
  "2016-12-31T23:59:60Z",
  "2027-01-01T00:00:00+24:00",
  "2027-01-01T00:00:00+00:60",
  "0000-12-31T23:59:59Z",
  "0001-01-01T00:00:00+00:01",
  "9999-12-31T23:59:59-00:01",
  "10000-01-01T00:00:00Z",
  "2027-01-01",
  "2027-01-01T00:00:00",
  "2027-01-01 00:00:00Z",
  "2027-01-01T00:00Z",
  "2027-01-01T00:00:00.Z",
  "2027-01-01T00:00:00.1234567890Z",
  "2027-01-01T00:00:00Z\n",
  "",
])("%s is no moment", (text) => {
  expect(parseTimestamp(text)).toBeUndefined();
});

test("every moment comes back as it went out", () => {
  const seconds = fc.bigInt({ min: -62135596800n, max: 253402300799n });
  fc.assert(
    fc.property(seconds, fc.integer({ min: 0, max: 999_999_999 }), (s, nanos) => {
      const text = formatTimestamp({ seconds: s, nanos } as Parameters<typeof formatTimestamp>[0]);
      expect(parseTimestamp(text)).toMatchObject({ seconds: s, nanos });
    }),
  );
});

test.each<[bigint, number]>([
  [-62135596801n, 0],
  [253402300800n, 0],
  [0n, -1],
  [0n, 1_000_000_000],
])("%d s and %d ns are no moment, and not written as one", (seconds, nanos) => {
  const timestamp = { seconds, nanos } as Parameters<typeof formatTimestamp>[0];
  expect(() => formatTimestamp(timestamp)).toThrow("is no time in JSON");
});
