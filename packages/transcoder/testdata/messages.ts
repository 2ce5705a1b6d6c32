/** Messages by chance, of any type. */
import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { enumNames } from "../contract/enums.ts";
import { headerOf, isOutputOnly } from "../contract/fields.ts";

export interface Kinds {
  readonly string: fc.Arbitrary<string>;
  /** Taken where they fit. */
  readonly integer: fc.Arbitrary<bigint>;
  /** Such as have no name in JSON. */
  readonly hasNamelessEnumValues: boolean;
  /** Of lists, which then repeat a few items. By default up to three. */
  readonly length?: fc.Arbitrary<number>;
  /** By default such as JSON can carry. */
  readonly timestamp?: fc.Arbitrary<{ seconds: bigint; nanos: number }>;
}

const RANGES: Partial<Record<ScalarType, readonly [min: bigint, max: bigint]>> = {
  [ScalarType.INT32]: [-(2n ** 31n), 2n ** 31n - 1n],
  [ScalarType.UINT32]: [0n, 2n ** 32n - 1n],
  [ScalarType.INT64]: [-(2n ** 63n), 2n ** 63n - 1n],
  [ScalarType.UINT64]: [0n, 2n ** 64n - 1n],
};
const SMALL = new Set([ScalarType.INT32, ScalarType.UINT32]);

/** With any of its fields. Knows the kinds of fields that answers usually have. */
export function messagesOf(desc: DescMessage, kinds: Kinds): fc.Arbitrary<Message> {
  const fields = Object.fromEntries(desc.fields.map((field) => [field.localName, valuesOf(field, kinds)]));
  return fc.record(fields, { requiredKeys: [] }).map((init) => create(desc, init as never));
}

function valuesOf(field: DescField, kinds: Kinds): fc.Arbitrary<unknown> {
  const one = field.message
    ? ofMessage(field.message, kinds)
    : field.enum
      ? ofEnum(field, kinds)
      : ofScalar(field, kinds);
  if (field.fieldKind !== "list") return one;
  if (!kinds.length) return fc.array(one, { maxLength: 3 });
  return fc
    .tuple(fc.array(one, { minLength: 1, maxLength: 3 }), kinds.length)
    .map(([some, length]) => Array.from({ length }, (_, i) => some[i % some.length]));
}

function ofMessage(desc: DescMessage, kinds: Kinds): fc.Arbitrary<unknown> {
  if (desc.typeName !== TimestampSchema.typeName) return messagesOf(desc, kinds);
  const seconds = fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n });
  const nanos = fc.oneof(fc.constantFrom(0, 5_000_000), fc.integer({ min: 0, max: 999_999_999 }));
  return (kinds.timestamp ?? fc.record({ seconds, nanos })).map((init) => create(TimestampSchema, init));
}

function ofEnum({ enum: desc }: DescField, { hasNamelessEnumValues }: Kinds): fc.Arbitrary<number> {
  const named = desc ? enumNames(desc).map(([, number]) => number) : [];
  return fc.constantFrom(...named, ...(hasNamelessEnumValues ? [0, 77] : []));
}

function ofScalar(field: DescField, { string, integer }: Kinds): fc.Arbitrary<unknown> {
  const { scalar = ScalarType.STRING } = field;
  if (scalar === ScalarType.BOOL) return fc.boolean();
  const range = RANGES[scalar];
  if (!range) return headerOf(field) !== "" && isOutputOnly(field) ? string.map(sendable) : string;
  const fitting = integer.map((value) => (value < range[0] || value > range[1] ? 0n : value));
  return SMALL.has(scalar) ? fitting.map(Number) : fitting;
}

/** The header of an answer has no other characters. */
const sendable = (text: string): string => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/gu, "?");
