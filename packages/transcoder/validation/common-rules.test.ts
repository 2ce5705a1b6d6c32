import { create, type DescMessage, toJson } from "@bufbuild/protobuf";
import { violationsToProto as protoByLibrary, type Violation } from "@bufbuild/protovalidate";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, test } from "vitest";
import { compileProtos } from "../fixtures/compile.ts";
import { commonCheck } from "./common-rules.ts";
import { judge } from "./protovalidate.ts";
import { violationsToProto } from "./violation.ts";

const registry = compileProtos({
  "rules.proto": `edition = "2023"; package acme; import "buf/validate/validate.proto";
    extend buf.validate.StringRules {
      bool polite = 80001 [(buf.validate.predefined).cel = {
        id: "string.polite" message: "must end with please" expression: "this.endsWith('please')"
      }];
      bool code = 80002 [(buf.validate.predefined).cel = {
        id: "string.digits" message: "must be digits" expression: "this.matches('^\\\\\\\\d*$')"
      }, (buf.validate.predefined).cel = { id: "string.two" message: "must be two characters" expression: "this.matches('^..$')" }];
    }`,
  "acme.proto": `syntax = "proto3"; package acme;
    import "buf/validate/validate.proto"; import "rules.proto";
    import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
    enum Color { RED = 0; BLUE = 2; }
    message Common {
      sint32 range = 1 [(buf.validate.field).sint32 = {gte: -3, lt: 9}];
      fixed64 most = 2 [(buf.validate.field).fixed64.lte = 5];
      uint32 same = 3 [(buf.validate.field).uint32 = {gte: 4, lte: 4}];
      google.protobuf.Timestamp late = 4 [(buf.validate.field).timestamp.gt = {seconds: 100, nanos: 5000000}];
      oneof choice {
        string word = 5 [(buf.validate.field).required = true, (buf.validate.field).string = {in: ["a", "b"], max_len: 1}];
        Common inner = 6;
      }
      repeated Common more = 7 [(buf.validate.field).repeated.max_items = 2];
      repeated Color colors = 8 [(buf.validate.field).repeated.items.enum = {defined_only: true, not_in: [0, 2]}];
      string code = 9 [(buf.validate.field).string.(acme.code) = false];
      map<string, string> notes = 10;
      google.protobuf.Int64Value wrapped = 11;
    }
    message Excluded { int32 it = 1 [(buf.validate.field).int32 = {gt: 9, lt: 3}]; }
    message Constant { int32 it = 1 [(buf.validate.field).int32.const = 9]; }
    message Polite { string it = 1 [(buf.validate.field).string.(acme.polite) = true]; }
    message Address { string it = 1 [(buf.validate.field).string = {max_len: 9, email: true}]; }
    message Expression { string it = 1 [(buf.validate.field).cel = {id: "x", expression: "this == 'x'"}]; }
    message Ignoring { int32 it = 1 [(buf.validate.field).int32.gt = 3, (buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE]; }
    message Items { repeated string it = 1 [(buf.validate.field).repeated = {items: {ignore: IGNORE_ALWAYS, string: {max_len: 1}}}]; }
    message Unique { repeated string it = 1 [(buf.validate.field).repeated.unique = true]; }
    message Map { map<string, int64> it = 1 [(buf.validate.field).map.values.int64.gt = 7]; }
    message Maps {
      map<string, Constant> a = 1;
      map<bool, int64> b = 2 [(buf.validate.field).map.values.int64.gt = 7];
      map<fixed32, Color> c = 3 [(buf.validate.field).map.values.enum.defined_only = true];
      map<sint64, string> d = 4 [(buf.validate.field).map.keys.sint64.gt = 7];
    }
    message MapOfMessages { map<string, Constant> it = 1; }
    message Wrapper { google.protobuf.Int64Value it = 1 [(buf.validate.field).int64.gt = 7]; }
    message Text { int64 it = 1 [jstype = JS_STRING, (buf.validate.field).int64.gt = 7]; }
    message Real { double it = 1 [(buf.validate.field).double.gt = 7]; }
    message Now { google.protobuf.Timestamp it = 1 [(buf.validate.field).timestamp.lt_now = true]; }
    message Mistaken { string it = 1 [(buf.validate.field).int64.gt = 7]; }
    message OneOf { oneof it { option (buf.validate.oneof).required = true; string a = 1; string b = 2; } }
    message Whole { option (buf.validate.message).cel = {id: "x", expression: "this.it == 'x'"}; string it = 1; }
    message Outer { repeated Constant it = 1; }`,
});
const messageOf = (name: string) => registry.getMessage(`acme.${name}`) as DescMessage;

test.each([
  ...["Excluded", "Constant", "Polite", "Address", "Expression", "Ignoring", "Items", "Unique", "Map", "MapOfMessages"],
  ...["Wrapper", "Text", "Real", "Now", "Mistaken", "OneOf", "Whole", "Outer"],
])("%s has a rule that is left to protovalidate", (name) => {
  expect(commonCheck(messageOf(name))).toBeUndefined();
});

const proto = (violations: readonly Violation[]) => toJson(ViolationsSchema, violationsToProto(violations));
const protoOfLibrary = (violations: readonly Violation[]) =>
  toJson(ViolationsSchema, protoByLibrary([...violations])[0]);

describe("the same is found as by protovalidate", () => {
  const desc = messageOf("Common");
  const check = commonCheck(desc) ?? expect.unreachable();
  const right = { same: 4, code: "12", choice: { case: "word", value: "a" } };
  const wrong = { ...right, most: 6n, range: 9 };

  test.each<[string, number, Record<string, unknown>]>([
    ["all is right", 0, { ...right, wrapped: 3n, notes: { a: "b" } }],
    ["nothing is set", 3, {}],
    ["words and codes", 4, { ...right, choice: { case: "word", value: "cc" }, code: "a\n2" }],
    ["limits", 3, { ...wrong, same: 5 }],
    ["a lower limit", 1, { ...right, range: -4 }],
    ["a time", 1, { ...right, late: { seconds: 100n, nanos: 5_000_000 } }],
    ["a later time", 0, { ...right, late: { seconds: 100n, nanos: 5_000_001 } }],
    ["items", 3, { ...right, colors: [0, 1, 2] }],
    ["messages within", 8, { ...wrong, choice: { case: "inner", value: wrong }, more: [wrong, right, right] }],
  ])("%s", (_, count, init) => {
    const message = create(desc, init);
    const expected = judge(desc, message) as readonly Violation[];
    expect(proto(check(message))).toEqual(protoOfLibrary(expected));
    expect(expected).toHaveLength(count);
  });
});

test("what protovalidate finds is told as it would tell it, also in maps and for oneofs", () => {
  const maps = { a: { x: { it: 1 } }, b: { true: 1n }, c: { 4: 1 }, d: { "-4": "x" } };
  for (const [name, init, count] of [
    ["Maps", maps, 4],
    ["OneOf", {}, 1],
    ["Polite", {}, 1],
    ["Whole", {}, 1],
  ] as const) {
    const desc = messageOf(name);
    const found = judge(desc, create(desc, init as never)) as readonly Violation[];
    expect(found).toHaveLength(count);
    expect(proto(found)).toEqual(protoOfLibrary(found));
  }
});
