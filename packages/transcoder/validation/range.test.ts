/** A number that its type can't hold is told the range of its rules, wherever it stands. */
import { create, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { EXACT } from "../contract/codec.ts";
import { compileProtos } from "../fixtures/compile.ts";
import { membersReader } from "../request/decode.ts";
import { parseJson } from "../request/json.ts";
import { scalarFromText } from "../request/scalars.ts";
import { valueRules } from "./range.ts";
import { prepareValidation, validate } from "./validate.ts";

const Ranges = compileProtos({
  "acme.proto": `syntax = "proto3"; package acme; import "buf/validate/validate.proto";
    message Ranges {
      int32 free = 1;
      int32 gt = 2 [(buf.validate.field).int32.gt = 0];
      sint64 both = 3 [(buf.validate.field).sint64 = {gte: -5, lt: 9}];
      uint32 most = 4 [(buf.validate.field).uint32.lte = 7];
      uint64 inside = 5 [(buf.validate.field).uint64 = {gt: 1, lt: 3}];
      int32 crossed = 6 [(buf.validate.field).int32 = {gt: 9, lt: 3}];
      repeated fixed64 list = 7 [(buf.validate.field).repeated.items.fixed64.gte = 2];
      map<string, int64> map = 8 [(buf.validate.field).map.values.int64.gt = 7];
      optional int64 optional = 9 [(buf.validate.field).int64.gt = 0];
      map<int32, string> keys = 10 [(buf.validate.field).map.keys.int32.gte = 4];
    }
    message Reals {
      float free = 1;
      double gt = 2 [(buf.validate.field).double.gt = 0];
      double gte = 3 [(buf.validate.field).double = {gte: 0, lte: 9.5}];
    }`,
});
const messageNamed = (name: string) => Ranges.getMessage(`acme.${name}`) as DescMessage;

function read(desc: DescMessage, json: string) {
  const message = create(desc);
  membersReader(desc.fields, EXACT)(message, parseJson(new TextEncoder().encode(json), 16), {
    strict: true,
    jsonNamesOnly: true,
    depth: 1,
  });
  return message;
}
const problem = (desc: DescMessage, name: string, value: string): string => {
  try {
    read(desc, `{"${name}":${name === "list" ? `[${value}]` : name === "map" ? `{"a":${value}}` : value}}`);
  } catch (error) {
    return (error as { sentence: string }).sentence.replace(/^.*?: /, "");
  }
  return "none";
};
const HUGE = "1000000000000000000000";

describe.each([
  ["free", "-2147483648", "2147483647"],
  ["gt", "1", "2147483647"],
  ["both", "-5", "8"],
  ["most", "0", "7"],
  ["inside", "2", "2"],
  ["crossed", "-2147483648", "2147483647"],
  ["list", "2", "18446744073709551615"],
  ["map", "8", "9223372036854775807"],
  ["optional", "1", "9223372036854775807"],
])("%s: from %s to %s", (name, min, max) => {
  const desc = messageNamed("Ranges");

  test.each([HUGE, `-${HUGE}`])("%s is told so, in JSON and in text", (value) => {
    expect(problem(desc, name, value)).toBe(`must be from ${min} to ${max}`);
    const field = desc.fields.find((one) => one.name === name) as DescField;
    const scalar = field.scalar ?? ScalarType.INT64;
    expect(() => scalarFromText(scalar, valueRules(field))(value)).toThrow(`must be from ${min} to ${max}`);
  });

  test("what is told is taken", async () => {
    await prepareValidation([desc]);
    for (const value of [min, max]) {
      const json = name === "list" ? `[${value}]` : name === "map" ? `{"a":${value}}` : value;
      const violations = validate(desc, read(desc, `{"${name}":${json}}`));
      expect(violations.filter(({ field }) => field[0] === desc.fields.find((one) => one.name === name))).toEqual([]);
    }
  });
});

test("the key of a map is told the range of its rule", () => {
  expect(problem(messageNamed("Ranges"), "keys", `{"${HUGE}":"a"}`)).toBe("must be from 4 to 2147483647");
});

test.each([
  ["free", "must be from -3.4028234663852886e+38 to 3.4028234663852886e+38"],
  ["gt", "must be greater than 0 and less than or equal to 1.7976931348623157e+308"],
  ["gte", "must be from 0 to 9.5"],
])("of real numbers, %s: %s", (name, words) => {
  expect(problem(messageNamed("Reals"), name, "1e999")).toBe(words);
});
