/** Values of fields from text, as they are in a path or a query. */
import { create, type DescField } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import type { Codec } from "../contract/codec.ts";
import { valueRules } from "../validation/range.ts";
import { enumFromText, scalarFromText } from "./scalars.ts";
import { hasTextForm, messageFromText } from "./well-known.ts";

/**
 * Whether a value of the field, or an item of a list or a map, can be told by a text: scalars, enums, Timestamp, Duration,
 * FieldMask and the wrappers of scalars.
 */
export const isTextual = ({ message }: DescField): boolean =>
  !message || hasTextForm(message) || isWrapperDesc(message);

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

/** Whether protobuf-es holds a field of a wrapper's type as the scalar within. */
export const isUnwrapped = ({ fieldKind, oneof }: DescField): boolean => fieldKind === "message" && !oneof;

/** Integers of 64 bits are held as text where the contract says `jstype = JS_STRING`. */
export const holding = <V>(field: DescField, read: (value: V) => unknown): ((value: V) => unknown) =>
  "longAsString" in field && field.longAsString ? (value) => String(read(value)) : read;
