/**
 * Scalars and enums from JSON values and from text, without any coercion; and the readers of fields that a text can tell, which
 * are well-known types too.
 */
import { create, type DescEnum, type DescField, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import type { FieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type Codec, NULL_VALUE, takenNames } from "../contract/codec.ts";
import { isTextual, isUnwrapped, messageFromText } from "../contract/well-known.ts";
import { SchemaError } from "../errors/violations.ts";
import { type Range, rangeOf, rangeWords, valueRules } from "../validation/range.ts";
import { JsonNumber, type JsonValue } from "./json.ts";

type FromJson = (value: JsonValue) => unknown;
type FromText = (text: string) => unknown;

type Rules = FieldRules | undefined;

/** protobuf-es holds 64 bit integers as bigint and 32 bit ones as number. */
const hold = (value: bigint, { max }: Range<bigint>): bigint | number => (max >= 2n ** 32n ? value : Number(value));

function within(value: bigint, range: Range<bigint>, rules: Rules): bigint | number {
  if (value < range.min || value > range.max) throw new SchemaError(rangeWords(range, rules));
  return hold(value, range);
}

function integerFromJson(value: JsonValue, range: Range<bigint>, rules: Rules): bigint | number {
  const integer = value instanceof JsonNumber ? toInteger(value.text) : undefined;
  if (integer === undefined) throw new SchemaError("must be an integer");
  return within(integer, range, rules);
}

function integerFromText(text: string, range: Range<bigint>, rules: Rules, clamped: boolean): bigint | number {
  if (!/^-?(0|[1-9]\d*)$/.test(text)) throw new SchemaError("must be an integer");
  const value = toInteger(text) as bigint;
  if (clamped && value < range.min) return hold(range.min, range);
  if (clamped && value > range.max) return hold(range.max, range);
  return within(value, range, rules);
}

const MAX_FLOAT = 2 ** 128 - 2 ** 104;

const NOT_IN_JSON = new Map<JsonValue, number>(
  [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((value) => [String(value), value]),
);

function floatingFromJson(value: JsonValue, isFloat: boolean, rules: Rules): number {
  const special = NOT_IN_JSON.get(value); // as strings, as in proto3 JSON
  if (special !== undefined) return special;
  if (!(value instanceof JsonNumber)) throw new SchemaError("must be a number");
  return floating(value.text, isFloat, rules);
}

/** Rounds to the nearest number that the field can hold; one too large for it is an error, one too small is 0. */
function floating(text: string, isFloat: boolean, rules: Rules): number {
  const value = isFloat ? Math.fround(Number(text)) : Number(text);
  if (!Number.isFinite(value)) {
    const limit = isFloat ? MAX_FLOAT : Number.MAX_VALUE;
    throw new SchemaError(rangeWords({ min: -limit, max: limit }, rules));
  }
  return value;
}

function anyString(value: JsonValue): string {
  if (typeof value !== "string") throw new SchemaError("must be a string");
  return value;
}

function string(value: JsonValue): string {
  const text = anyString(value);
  if (text.includes("\0")) throw new SchemaError("must not contain U+0000");
  return text;
}

function boolean(value: JsonValue): boolean {
  if (typeof value !== "boolean") throw new SchemaError("must be true or false");
  return value;
}

/** Base64 with padding (RFC 4648, section 4), in the one form that encodes the bytes. */
function bytes(value: JsonValue): Uint8Array<ArrayBuffer> {
  const decoded = typeof value === "string" ? Buffer.from(value, "base64") : undefined;
  if (!decoded || decoded.toString("base64") !== value)
    throw new SchemaError("must be a string in base64 with padding");
  return new Uint8Array(decoded);
}

/** As in JSON, and in base64url (section 5), where padding may be left out: an address has it so. */
function bytesFromText(text: string): Uint8Array<ArrayBuffer> {
  const standard = text.replaceAll("-", "+").replaceAll("_", "/");
  try {
    return bytes(standard.padEnd(Math.ceil(standard.length / 4) * 4, "="));
  } catch {
    throw new SchemaError("must be in base64url");
  }
}

/** In any form of base64: with the letters of either alphabet, with padding or without. */
function anyBytes(value: JsonValue): Uint8Array<ArrayBuffer> {
  if (typeof value !== "string" || !/^[\w+/-]*={0,2}$/.test(value) || !isPadded(value))
    throw new SchemaError("must be a string in base64");
  return new Uint8Array(Buffer.from(value, "base64"));
}

/** Four letters are three bytes; one letter alone is none, and padding fills the last four. */
const isPadded = (text: string): boolean => (text.endsWith("=") ? text.length % 4 === 0 : text.length % 4 !== 1);

/** How a scalar is read from JSON. The rules are those that its range is told by. */
export function scalarFromJson(type: ScalarType, rules: Rules | undefined, { isLenient }: Codec): FromJson {
  const range = rangeOf(type);
  const number = isLenient ? numberInText : (value: JsonValue) => value;
  if (range) return (value) => integerFromJson(number(value), range, rules);
  switch (type) {
    case ScalarType.STRING:
      return isLenient ? anyString : string;
    case ScalarType.BOOL:
      return boolean;
    case ScalarType.BYTES:
      return isLenient ? anyBytes : bytes;
    default:
      return (value) => floatingFromJson(number(value), type === ScalarType.FLOAT, rules);
  }
}

/** A number that is written in a string, as in proto3 JSON. */
const numberInText = (value: JsonValue): JsonValue =>
  typeof value === "string" && NUMBER.test(value) ? new JsonNumber(value) : value;

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** How a scalar is read from a path, a query, a header or the key of a map. `clamped` concerns integers only. */
export function scalarFromText(type: ScalarType, rules?: Rules, clamped = false): FromText {
  const range = rangeOf(type);
  if (range) return (text) => integerFromText(text, range, rules, clamped);
  switch (type) {
    case ScalarType.STRING:
      return string;
    case ScalarType.BOOL:
      return (text) => boolean(text === "true" || (text === "false" ? false : null));
    case ScalarType.BYTES:
      return bytesFromText;
    default:
      return (text) => {
        const special = NOT_IN_JSON.get(text);
        if (special !== undefined) return special;
        if (!NUMBER.test(text)) throw new SchemaError("must be a number");
        return floating(text, type === ScalarType.FLOAT, rules);
      };
  }
}

/** Callers may send what they get. */
const takesNumbers = ({ hasFullEnumNames, enumNumbers }: Codec): boolean => hasFullEnumNames || enumNumbers;

/** How an enum is read from JSON. `isItem` as in `enumNames`. */
export function enumFromJson(desc: DescEnum, isItem: boolean, codec: Codec): FromJson {
  if (desc.typeName === NULL_VALUE) return nullValue;
  const numbers = new Map<JsonValue, number>(takenNames(desc, isItem, codec));
  const allowed = [...numbers.keys()].join(", ");
  return (value) => {
    const number = numbers.get(value) ?? (takesNumbers(codec) ? numberIn(value, desc) : undefined);
    if (number === undefined) throw new SchemaError(`must be one of ${allowed}`);
    return number;
  };
}

function enumFromText(desc: DescEnum, codec: Codec): FromText {
  const read = enumFromJson(desc, false, codec);
  return (text) => read(takesNumbers(codec) && /^-?\d{1,10}$/.test(text) ? new JsonNumber(text) : text);
}

/** An enum by its number: any of 32 bits, but in an enum that is closed (proto2) those that it has. */
function numberIn(value: JsonValue, desc: DescEnum): number | undefined {
  const integer = value instanceof JsonNumber ? toInteger(value.text) : undefined;
  if (integer === undefined || integer !== BigInt.asIntN(32, integer)) return undefined;
  const number = Number(integer);
  return desc.open || desc.values.some((each) => each.number === number) ? number : undefined;
}

const nullValue: FromJson = (value) => {
  if (value !== null && value !== "NULL_VALUE") throw new SchemaError("must be null");
  return 0;
};

const PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

// No integer that a field can hold has more digits (2^64-1 has 20); beyond, size is all that matters.
const MANY_DIGITS = 40;

/**
 * The integer that a JSON number stands for, exact however it is written: 1 for `1.0` and `10e-1`, 0 for `-0`; undefined for `1.5`. Numbers of more
 * than 40 digits come back as 10^40 or -10^40: no field holds either.
 */
export function toInteger(text: string): bigint | undefined {
  if (/^-?\d{1,15}$/.test(text)) return BigInt(Number(text)); // the common case
  const [, sign, whole = "", fraction = "", exponent = "0"] = PARTS.exec(text) as RegExpExecArray;
  const significant = (whole + fraction).replace(/^0+/, "");
  const digits = significant.slice(0, lengthWithoutZeros(significant));
  if (digits === "") return 0n;
  const zeros = Number(exponent) - fraction.length + (significant.length - digits.length);
  if (zeros < 0) return undefined;
  const size = digits.length + zeros > MANY_DIGITS ? 10n ** BigInt(MANY_DIGITS) : BigInt(digits + "0".repeat(zeros));
  return sign ? -size : size;
}

/** A scan, for /0+$/ begins anew at every zero. */
function lengthWithoutZeros(digits: string): number {
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return end;
}

/**
 * Compiles the reader of a field's value, of a list or a map that of one item. What it returns can be assigned to the field as it is: a
 * wrapper outside of lists, maps and oneofs is held as its scalar. `isClamped` takes an integer beyond its type's range as the nearest
 * within it.
 *
 * @throws Error when the field is not textual; the reader throws SchemaError for a text that is no such value
 */
export function textReader(field: DescField, codec: Codec, isClamped = false): (text: string) => unknown {
  const { message, enum: enumeration, scalar } = field;
  if (!isTextual(field)) throw new Error(`${field.name} can't be told by a text`);
  if (enumeration) return enumFromText(enumeration, codec);
  if (!message) return holding(field, scalarFromText(scalar as never, valueRules(field), isClamped));
  if (!isWrapperDesc(message)) return messageFromText(message, false);
  const read = scalarFromText(message.fields[0].scalar, valueRules(field));
  return isUnwrapped(field) ? read : (text) => create(message, { value: read(text) } as never);
}

/** Integers of 64 bits are held as text where the contract says `jstype = JS_STRING`. */
export const holding = <V>(field: DescField, read: (value: V) => unknown): ((value: V) => unknown) =>
  "longAsString" in field && field.longAsString ? (value) => String(read(value)) : read;
