/** Random messages of any type of the contract, valid and invalid, as JSON and as bytes of protobuf. */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { bytes, bytesOf, oddString, repeated, type Text } from "./texts.ts";

/** A JSON text to send. `raw` text is sent unchanged, and need not be JSON. */
export type Json =
  | { readonly raw: Text }
  | { readonly members: readonly (readonly [name: string, value: Json])[] }
  | { readonly items: readonly Json[] };

export function jsonBytes(json: Json): Buffer {
  if ("raw" in json) return bytesOf(json.raw);
  const inner =
    "members" in json
      ? json.members.map(([name, value]) => Buffer.concat([Buffer.from(`${JSON.stringify(name)}:`), jsonBytes(value)]))
      : json.items.map(jsonBytes);
  const [open, close] = "members" in json ? "{}" : "[]";
  const parts = inner.flatMap((part, i) => (i === 0 ? [part] : [Buffer.from(","), part]));
  return Buffer.concat([Buffer.from(open ?? ""), ...parts, Buffer.from(close ?? "")]);
}

const raw = (text: fc.Arbitrary<Text>): fc.Arbitrary<Json> => fc.record({ raw: text });
const within = (before: string, inner: fc.Arbitrary<Text>, after: string): fc.Arbitrary<Text> =>
  fc.tuple(fc.constant(before), inner, fc.constant(after));

const NUMBERS = ["0", "-1", "1.0", "1e0", "1.5", "-0", "1e400", "-1e400", "1e99999999999", "01", "+1", "NaN", "0x1"];
const LARGE = ["9007199254740993", "9223372036854775807", "9223372036854775808", "2147483647", "2147483648"];
const OTHERS = [
  "null",
  "true",
  "false",
  "[]",
  "{}",
  "[1]",
  '{"$gt":1}',
  "tru",
  "",
  " ",
  "\ufeff1",
  '"',
  "[1",
  "1 1",
  ",",
];
const TEXTS = [
  '""',
  '" "',
  '"7"',
  '"a\\u0000b"',
  '"\\ud83d"',
  '"\\udfff\\ud83d"',
  '"\\x"',
  '"a\nb"',
  '"__proto__"',
  '"0001-01-01T00:00:00Z"',
];
export const oddJson: fc.Arbitrary<Json> = fc.oneof(
  { weight: 6, arbitrary: raw(fc.constantFrom<Text[]>(...NUMBERS, ...LARGE, ...OTHERS, ...TEXTS)) },
  { weight: 2, arbitrary: raw(within('"', repeated(60_000, ["x", " ", "\\u0041", "\u{1f415}", "\\\\", "0"]), '"')) },
  { weight: 1, arbitrary: raw(repeated(60_000, ["[", '{"a":', "1", "0", "[1],", " ", '"a":1,'])) },
  { weight: 1, arbitrary: raw(within("1", repeated(60_000, ["0", "9"]), "1")) },
  { weight: 1, arbitrary: raw(within("1.", repeated(60_000, ["0", "9"]), "e-1")) },
  { weight: 1, arbitrary: raw(within("[0", repeated(30_000, [",0", ",{}", ',"1"']), "]")) },
  { weight: 1, arbitrary: raw(bytes(12)) },
);

/** How JSON names the values of an enum: HTTP has its own words. */
export type Dialect = "http" | "rpc";

const SIMPLE = ["1", "2", "3", "8"];
const ofText = (text: string) => raw(fc.constant<Text>(text));
function goodJson(field: DescField, dialect: Dialect, depth: number): fc.Arbitrary<Json> {
  const one = (): fc.Arbitrary<Json> => {
    if (field.message?.typeName === TimestampSchema.typeName) return ofText('"2027-12-31T23:59:59Z"');
    if (field.message?.typeName === FieldMaskSchema.typeName) return ofText('"name,status,complete"');
    if (field.message) return depth > 3 ? ofText("{}") : jsonOf(field.message, dialect, depth + 1);
    if (field.enum) {
      const names = field.enum.values.map(({ name }) => (dialect === "rpc" ? name : (name.split("_").at(-1) ?? "")));
      return raw(fc.constantFrom<Text[]>(...names.map((name) => `"${dialect === "rpc" ? name : name.toLowerCase()}"`)));
    }
    if (field.scalar === ScalarType.STRING)
      return raw(fc.constantFrom<Text[]>('"Rex"', '"1"', '"id"', '"-id"', '"\\"1\\""'));
    if (field.scalar === ScalarType.BOOL) return raw(fc.constantFrom<Text[]>("true", "false"));
    return raw(fc.constantFrom<Text[]>(...SIMPLE));
  };
  return field.fieldKind === "list" ? fc.record({ items: fc.array(one(), { maxLength: 3 }) }) : one();
}

/** Mostly valid, with all members or some; now and then with a wrong value, an unknown member or a repeated one. */
export function jsonOf(desc: DescMessage, dialect: Dialect, depth = 0): fc.Arbitrary<Json> {
  const member = (field: DescField) =>
    fc.tuple(
      fc.constant(field.jsonName),
      fc.oneof({ weight: 9, arbitrary: goodJson(field, dialect, depth) }, { weight: 2, arbitrary: oddJson }),
    );
  const strange = fc.tuple(oddString, oddJson);
  const some = fc.array(
    fc.oneof(...desc.fields.map((field) => ({ weight: 3, arbitrary: member(field) })), {
      weight: 1,
      arbitrary: strange,
    }),
    { maxLength: desc.fields.length + 1 },
  );
  return fc.oneof(
    { weight: 5, arbitrary: fc.record({ members: fc.tuple(...desc.fields.map(member)) }) },
    { weight: 5, arbitrary: fc.record({ members: some }) },
    { weight: 1, arbitrary: oddJson },
  );
}

/** Fields of protobuf as on the wire, valid or not. */
export type Wire =
  | { readonly field: number; readonly varint: string }
  | { readonly field: number; readonly text: Text }
  | { readonly field: number; readonly message: readonly Wire[] }
  | { readonly raw: Text };

export function wireBytes(fields: readonly Wire[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const one of fields) {
    if ("raw" in one) writer.raw(bytesOf(one.raw));
    else if ("varint" in one) writer.tag(one.field, 0).uint64(BigInt.asUintN(64, BigInt(one.varint)));
    else if ("text" in one) writer.tag(one.field, 2).bytes(bytesOf(one.text));
    else writer.tag(one.field, 2).bytes(wireBytes(one.message));
  }
  return writer.finish();
}

const varint = fc.constantFrom(
  "0",
  "1",
  "2",
  "3",
  "8",
  "-1",
  "101",
  "2147483648",
  "9007199254740993",
  `${2n ** 63n - 1n}`,
);
const oddText: fc.Arbitrary<Text> = fc.oneof(
  fc.constantFrom<Text[]>("Rex", "", "id", "-id", '"1"', "*", "\u0000", "name", "pet.name", "a,b", { hex: "ff" }),
  bytes(8),
  repeated(70_000, ["x", " ", '"1",', "a,", "\u{1f415}", "\u0001"]),
);
const strange: fc.Arbitrary<Wire> = fc.oneof(
  fc.record({ field: fc.integer({ min: 1, max: 40 }), varint }),
  fc.record({ field: fc.integer({ min: 1, max: 2 ** 29 - 1 }), text: oddText }),
  fc.record({ raw: bytes(8) }),
  fc.record({ raw: repeated(60_000, ["\b\u0001", "\u0018\u0001", "\n\u0000", "\u000b"]) }),
);

function wireOfField(field: DescField, depth: number): fc.Arbitrary<Wire> {
  const number = fc.constant(field.number);
  if (field.message && depth < 4) return fc.record({ field: number, message: wireOf(field.message, depth + 1) });
  if (field.message || field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES)
    return fc.record({ field: number, text: oddText });
  return fc.record({ field: number, varint });
}

/** The fields of a message in any order and number, and unknown ones. */
export const wireOf = (desc: DescMessage, depth = 0): fc.Arbitrary<readonly Wire[]> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.tuple(...desc.fields.map((field) => wireOfField(field, depth))) },
    {
      weight: 4,
      arbitrary: fc.array(
        fc.oneof(...desc.fields.map((field) => ({ weight: 4, arbitrary: wireOfField(field, depth) })), {
          weight: 1,
          arbitrary: strange,
        }),
        { maxLength: desc.fields.length + 2 },
      ),
    },
  );
