/** The range of a number: what its rules (buf.validate) leave of what its type can hold. */
import { type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldOption,
  type Int64Rules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { integers, isInteger, LIMITS } from "./common-rules.ts";

export interface Range<T extends bigint | number> {
  readonly min: T;
  readonly max: T;
}

/** What a type of integers can hold; undefined for other types. */
export function rangeOf(type: ScalarType): Range<bigint> | undefined {
  if (!isInteger(type)) return undefined;
  const name = ScalarType[type]; // UINT64, FIXED64, INT64, SINT64, SFIXED64, and the same with 32
  const size = 1n << BigInt(name.slice(-2));
  return /^[UF]/.test(name) ? { min: 0n, max: size - 1n } : { min: -size / 2n, max: size / 2n - 1n };
}

/** The rules of a field's value; of a list those of its items, of a map those of its values. */
export function valueRules(field: DescField): FieldRules | undefined {
  const rules = getOption(field, fieldOption);
  if (field.fieldKind === "list") return rules.type.case === "repeated" ? rules.type.value.items : undefined;
  if (field.fieldKind === "map") return rules.type.case === "map" ? rules.type.value.values : undefined;
  return rules;
}

export function keyRules(field: DescField): FieldRules | undefined {
  const { type } = getOption(field, fieldOption);
  return type.case === "map" ? type.value.keys : undefined;
}

/** Tells which numbers are allowed, for a number that the type can't hold. */
export function rangeWords<T extends bigint | number>({ min, max }: Range<T>, rules: FieldRules | undefined): string {
  // The limits of all numbers are spelled like those of int64.
  const { greaterThan, lessThan } = (rules?.type.value ?? {}) as Partial<Int64Rules>;
  const low = greaterThan?.case ? greaterThan : ({ case: "gte", value: min } as const);
  const high = lessThan?.case ? lessThan : ({ case: "lte", value: max } as const);
  // With the upper limit below the lower one, what is between them is excluded.
  if (integers.compare(low.value, high.value) > 0) return `must be from ${min} to ${max}`;
  if (typeof min === "bigint") {
    const [first, last] = [BigInt(low.value), BigInt(high.value)];
    return `must be from ${low.case === "gt" ? first + 1n : first} to ${high.case === "lt" ? last - 1n : last}`;
  }
  if (low.case === "gte" && high.case === "lte") return `must be from ${low.value} to ${high.value}`;
  return `must be ${LIMITS[low.case].words} ${low.value} and ${LIMITS[high.case].words} ${high.value}`;
}
