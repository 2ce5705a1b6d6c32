/** Each kind of field that a path or a query can tell, in both codecs. */
import type { DescMessage } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createCodec, EXACT } from "../contract/codec.ts";
import { isTextual } from "../contract/well-known.ts";
import { compileProtos } from "../fixtures/compile.ts";
import { textReader, toInteger } from "./scalars.ts";

test.each<[string, bigint | undefined]>([
  ["0", 0n],
  ["-0", 0n],
  ["-0.0e5", 0n],
  ["0e999999999999", 0n],
  ["1.0", 1n],
  ["1e3", 1000n],
  ["10e-1", 1n],
  ["1.5e1", 15n],
  ["-1.50e+1", -15n],
  ["900719925474099.3e1", 9007199254740993n],
  ["9223372036854775807", 9223372036854775807n],
  ["9223372036854775807.000", 9223372036854775807n],
  ["1.5", undefined],
  ["1e-400", undefined],
  ["1.00000000000000000000000001", undefined],
  ["9007199254740992.5", undefined],
  ["1e400", 10n ** 40n],
  ["-1e999999999999999999999", -(10n ** 40n)],
  ["1e-999999999999999999999", undefined],
])("%s", (text, value) => {
  expect(toInteger(text)).toBe(value);
});

test("an integer is the same however its point and exponent are shifted", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), fc.nat(30), (value, shift) => {
      const [sign, digits] = [value < 0n ? "-" : "", String(value).replace("-", "")];
      expect(toInteger(`${value}`)).toBe(value);
      expect(toInteger(`${value}${"0".repeat(10)}e-10`)).toBe(value);
      const padded = digits.padStart(shift + 1, "0");
      const cut = padded.length - shift;
      const whole = padded.slice(0, cut).replace(/^0+(?=\d)/, "");
      expect(toInteger(`${sign}${whole}.${padded.slice(cut)}0e${shift}`)).toBe(value);
    }),
  );
});

test("a fraction is never taken for an integer", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }),
      fc.nat(300),
      fc.integer({ min: 1, max: 9 }),
      (whole, zeros, digit) => {
        expect(toInteger(`${whole}.${"0".repeat(zeros)}${digit}`)).toBeUndefined();
      },
    ),
  );
});

const All = compileProtos({
  "all.proto": `syntax = "proto3";
    package all.v1;
    import "buf/validate/validate.proto";
    import "google/protobuf/any.proto";
    import "google/protobuf/duration.proto";
    import "google/protobuf/field_mask.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    enum Colour { COLOUR_UNSPECIFIED = 0; COLOUR_RED = 1; }
    message All {
      int64 number = 1;
      Colour colour = 2;
      google.protobuf.Timestamp at = 3;
      google.protobuf.Duration length = 4;
      google.protobuf.FieldMask mask = 5;
      google.protobuf.Int64Value many = 6 [(buf.validate.field).int64.gte = 7];
      google.protobuf.StringValue name = 7;
      google.protobuf.BoolValue open = 8;
      google.protobuf.BytesValue raw = 9;
      repeated google.protobuf.Duration lengths = 10;
      repeated google.protobuf.DoubleValue weights = 11;
      google.protobuf.Struct data = 12;
      google.protobuf.Value value = 13;
      google.protobuf.Any any = 14;
      All all = 15;
      map<string, string> labels = 16;
      oneof choice { google.protobuf.UInt32Value few = 17; }
    }`,
}).getMessage("all.v1.All") as DescMessage;

const field = (name: string) => All.field[name] as DescMessage["fields"][number];
const proto3 = createCodec({});

test.each([
  ["number", "-9223372036854775808", -9223372036854775808n],
  ["at", "2027-01-02T03:04:05.6Z", { seconds: 1798859045n, nanos: 600_000_000 }],
  ["length", "-1.5s", { seconds: -1n, nanos: -500_000_000 }],
  ["length", "315576000000s", { seconds: 315_576_000_000n, nanos: 0 }],
  ["lengths", "0.000000001s", { seconds: 0n, nanos: 1 }],
  ["mask", "displayName,author.given_name", { paths: ["display_name", "author.given_name"] }],
  ["mask", "", { paths: [] }],
  ["many", "9007199254740993", 9007199254740993n],
  ["name", "a,b", "a,b"],
  ["open", "true", true],
  ["raw", "-_8", new Uint8Array([251, 255])],
  ["weights", "1e3", { value: 1000 }],
  ["few", "4294967295", { value: 4294967295 }],
])("%s: %s", (name, text, value) => {
  for (const codec of [EXACT, proto3]) {
    const read = textReader(field(name), codec)(text);
    if (typeof read === "object") expect(read).toMatchObject(value as object);
    else expect(read).toBe(value);
  }
});

test.each([
  ["number", "1.5", "must be an integer"],
  ["at", "2027-01-02", /^must be a date and time/],
  ["length", "1", /^must be seconds/],
  ["length", "1s ", /^must be seconds/],
  ["length", ".5s", /^must be seconds/],
  ["length", "315576000000.1s", /^must be seconds/],
  ["mask", "a,,b", /^must be names of fields/],
  ["many", "9223372036854775808", "must be from 7 to 9223372036854775807"],
  ["open", "1", "must be true or false"],
  ["few", "-1", "must be from 0 to 4294967295"],
])("%s: %s is none", (name, text, problem) => {
  for (const codec of [EXACT, proto3]) expect(() => textReader(field(name), codec)(text)).toThrow(problem);
});

test("enums go by short names, or in proto3 JSON by full names and numbers", () => {
  const [exact, full] = [textReader(field("colour"), EXACT), textReader(field("colour"), proto3)];
  expect(exact("red")).toBe(1);
  for (const text of ["COLOUR_RED", "1", "unspecified"]) expect(() => exact(text)).toThrow("must be one of red");
  expect(["COLOUR_RED", "1", "COLOUR_UNSPECIFIED", "7", "-1"].map(full)).toEqual([1, 1, 0, 7, -1]);
  for (const text of ["red", "2147483648", "1.0", "99999999999999999999"])
    expect(() => full(text)).toThrow("must be one of COLOUR_UNSPECIFIED, COLOUR_RED");
});

test("other messages are not told by a text", () => {
  const others = ["data", "value", "any", "all"];
  expect(All.fields.filter((one) => !isTextual(one)).map(({ name }) => name)).toEqual(others);
  expect(() => textReader(field("all"), EXACT)).toThrow("all can't be told by a text");
});
