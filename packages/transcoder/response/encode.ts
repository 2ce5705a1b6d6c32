/** From messages to JSON text, by the descriptor. Compiled once per message type. */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  isFieldSet,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { enumTexts, hasZeroName, isOfItems } from "../contract/enums.ts";
import { headerOf } from "../contract/fields.ts";
import { formatTimestamp } from "../request/timestamp.ts";
import type { TellUnknown } from "./unknown-values.ts";

/** Writes one value. Values come from a decoded message, so that their JavaScript types are those of the descriptor. */
type Write = (value: never) => string;

/** What the parts of one writer have in common. */
interface Around {
  readonly tellUnknown: TellUnknown | undefined;
  readonly compiled: Map<DescMessage, Write>;
}

/** Compiles the writer of a whole message. */
export const messageWriter = (desc: DescMessage, tellUnknown?: TellUnknown): ((message: Message) => string) =>
  compileMessage(desc, { tellUnknown, compiled: new Map() }) as (message: Message) => string;

/** Compiles the writer of one field of a message, as in `response_body`. */
export const fieldWriter = (field: DescField, tellUnknown?: TellUnknown): ((message: Message) => string) => {
  const write = containerWriter(field, { tellUnknown, compiled: new Map() });
  return (message) => (isPresent(message, field) ? write(contentOf(message, field)) : emptyOf(field));
};

/** What is answered where the field of `response_body` was not sent. */
const emptyOf = ({ message }: DescField): string =>
  message && message.typeName !== TimestampSchema.typeName ? "{}" : "null";

/** Whether the answer of `response_body` can be null, when it was not sent or is an enum that is unspecified. */
export const mayBeNull = (field: DescField): boolean =>
  field.fieldKind !== "list" &&
  field.fieldKind !== "map" &&
  emptyOf(field) === "null" &&
  (field.presence !== FeatureSet_FieldPresence.IMPLICIT || (field.fieldKind === "enum" && !hasZeroName(field.enum)));

function compileMessage(desc: DescMessage, around: Around): Write {
  const known = around.compiled.get(desc);
  if (known) return known;
  let members: { field: DescField; head: string; write: Write }[] | undefined;
  const writer = (message: Message) => {
    // Compiled late, because a message may contain itself. Fields that travel as headers are no members.
    members ??= desc.fields
      .filter((field) => headerOf(field) === "")
      .map((field) => ({ field, head: `${JSON.stringify(field.jsonName)}:`, write: containerWriter(field, around) }));
    let text = "";
    for (const { field, head, write } of members)
      if (isPresent(message, field)) text += `${text === "" ? "" : ","}${head}${write(contentOf(message, field))}`;
    return `{${text}}`;
  };
  around.compiled.set(desc, writer as Write);
  return writer as Write;
}

/** Fields without presence are always shown. An enum that says "unspecified" never is, but in a list or map. */
function isPresent(message: Message, field: DescField): boolean {
  if (field.fieldKind === "list" || field.fieldKind === "map") return true;
  const mayBeAbsent = field.presence !== FeatureSet_FieldPresence.IMPLICIT || field.oneof;
  if (mayBeAbsent && !isFieldSet(message, field)) return false;
  return field.fieldKind !== "enum" || contentOf(message, field) !== (0 as never) || hasZeroName(field.enum);
}

/** The value of a field that is set. */
export function contentOf(message: Message, { oneof, localName }: DescField): never {
  const members = message as unknown as Record<string, never>;
  return oneof ? (members[oneof.localName] as unknown as { value: never }).value : (members[localName] as never);
}

function containerWriter(field: DescField, around: Around): Write {
  const write = valueWriter(field, around);
  if (field.fieldKind === "list") return (items: never[]) => `[${items.map(write).join(",")}]`;
  if (field.fieldKind === "map")
    return (entries: Record<string, never>) =>
      `{${Object.entries(entries)
        .map(([key, value]) => `${JSON.stringify(key)}:${write(value)}`)
        .join(",")}}`;
  return write;
}

function valueWriter(field: DescField, around: Around): Write {
  if (field.enum) return enumWriter(field.enum, isOfItems(field), around);
  if (field.message)
    return field.message.typeName === TimestampSchema.typeName
      ? (value: Timestamp) => JSON.stringify(formatTimestamp(value))
      : compileMessage(field.message, around);
  switch (field.scalar) {
    case ScalarType.STRING:
      return JSON.stringify;
    case ScalarType.BYTES:
      return (value: Uint8Array) => JSON.stringify(Buffer.from(value).toString("base64"));
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return floating;
    default:
      return String; // booleans and integers; of a bigint every digit
  }
}

// JSON has no such numbers; as in proto3 JSON they are the strings "NaN", "Infinity" and "-Infinity".
function floating(value: number): string {
  if (!Number.isFinite(value)) return JSON.stringify(String(value));
  return Object.is(value, -0) ? "-0" : String(value);
}

function enumWriter(desc: DescEnum, isItem: boolean, { tellUnknown }: Around): Write {
  const texts = enumTexts(desc, isItem);
  return (value: number) => {
    const text = texts.get(value);
    if (text === undefined) tellUnknown?.(desc, value);
    return text ?? `${value}`;
  };
}
