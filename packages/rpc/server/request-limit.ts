/** The largest request of a method, by what its fields can hold: mostly far less than the limit for all messages. */
import { type DescField, type DescMessage, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { type Limit, limitOf, MAX_PATHS } from "connect-transcoder/validation/field-limits";
import { MAX_MESSAGE_BYTES } from "./message-limit.ts";

/** For what the limits of fields don't include: white space, needless escapes, fields of a newer contract. */
export const SLACK_BYTES = 64 * 1024;

const limits = new WeakMap<DescMethod, number>();

/**
 * Most bytes of a method's request message, in any encoding and after decompression: what its fields can hold as JSON (which
 * is larger than binary) plus 64 KiB, at most 1 MiB.
 */
export function maxRequestBytes(method: DescMethod): number {
  let limit = limits.get(method);
  if (limit === undefined) {
    limit = Math.min(MAX_MESSAGE_BYTES, SLACK_BYTES + messageBytes(method.input, []));
    limits.set(method, limit);
  }
  return limit;
}

// In JSON that escapes everything but ASCII: a character beyond U+FFFF is \uXXXX twice.
const CHARACTER_BYTES = 12;
// "-9223372036854775808", or a double with all its digits.
const NUMBER_BYTES = 26;
const TIMESTAMP_BYTES = 40;
/** Quotes, colon and comma. */
const MEMBER_BYTES = 4;
const STRING_BYTES = 2;

/** Infinite for a message that may contain itself. `around` are the messages that contain it, from the request on. */
function messageBytes(desc: DescMessage, around: readonly DescMessage[]): number {
  if (around.includes(desc)) return Number.POSITIVE_INFINITY;
  if (desc.typeName === TimestampSchema.typeName) return TIMESTAMP_BYTES;
  if (desc.typeName === FieldMaskSchema.typeName) return MAX_PATHS * longestPath(around);
  const within = [...around, desc];
  const members = desc.fields.map(
    (field) => MEMBER_BYTES + Math.max(field.name.length, field.jsonName.length) + fieldBytes(field, within),
  );
  return members.reduce((sum, bytes) => sum + bytes, STRING_BYTES);
}

function fieldBytes(field: DescField, within: readonly DescMessage[]): number {
  const limit = limitOf(field);
  if (field.fieldKind === "list") return limit.size * (1 + valueBytes(field, limit.items, within));
  if (field.fieldKind === "map") {
    const key = MEMBER_BYTES + scalarBytes(field.mapKey, limit.keys);
    return limit.size * (key + valueBytes(field, limit.items, within));
  }
  return valueBytes(field, limit, within);
}

function valueBytes(field: DescField, limit: Limit | undefined, within: readonly DescMessage[]): number {
  if (field.message) return messageBytes(field.message, within);
  if (field.enum) return STRING_BYTES + Math.max(NUMBER_BYTES, ...field.enum.values.map(({ name }) => name.length));
  return scalarBytes(field.scalar, limit);
}

function scalarBytes(type: ScalarType | undefined, { size }: Limit = { size: Number.POSITIVE_INFINITY }): number {
  if (type === ScalarType.STRING) return STRING_BYTES + CHARACTER_BYTES * size;
  if (type === ScalarType.BYTES) return STRING_BYTES + 2 * size;
  return NUMBER_BYTES;
}

/** The longest path of a field mask, plus a comma. A path names a field of a message that is a field of the request. */
function longestPath([request]: readonly DescMessage[]): number {
  const names = request?.fields.flatMap(({ message }) => message?.fields ?? []).map(({ name }) => name.length) ?? [];
  return 1 + Math.max(0, ...names);
}
