/** From messages to JSON text, by the descriptor. Compiled once per message type. */
import {
  type DescField,
  type DescMessage,
  getExtension,
  isFieldSet,
  type Message,
  type ScalarType,
} from "@bufbuild/protobuf";
import {
  AnySchema,
  FeatureSet_FieldPresence,
  hasCustomJsonRepresentation,
  isWrapperDesc,
  StructSchema,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { type Codec, hasZeroName, isOfItems, MOST_NESTED, NULL_VALUE } from "../contract/codec.ts";
import { headerOf } from "../contract/fields.ts";
import type { Operation } from "../contract/operation.ts";
import { isUnwrapped } from "../contract/well-known.ts";
import { enumWriter, scalarWriter, type TellUnknown, type Write } from "./scalars.ts";
import { anyWriter, structText, wellKnownWriter } from "./well-known.ts";

/** What the parts of one writer have in common. */
interface Around {
  readonly codec: Codec;
  readonly tellUnknown: TellUnknown | undefined;
  readonly compiled: Map<DescMessage, Write>;
  /** Counts the object that is being written, and those that hold it. */
  depth: number;
}

/** Compiles a writer, and counts anew each time that it writes: an error may have left the count behind. */
function counting(codec: Codec, tellUnknown: TellUnknown | undefined, compile: (around: Around) => WriteMessage) {
  const around: Around = { codec, tellUnknown, compiled: new Map(), depth: 0 };
  const write = compile(around);
  return (message: Message): string => {
    around.depth = 0;
    return write(message);
  };
}

const tooDeep = () => new RangeError(`the answer has more than ${MOST_NESTED} messages within one another`);

type WriteMessage = (message: Message) => string;

export const messageWriter = (desc: DescMessage, codec: Codec, tellUnknown?: TellUnknown): WriteMessage =>
  counting(codec, tellUnknown, (around) => compileMessage(desc, around) as WriteMessage);

/** Compiles the writer of one field of a message, as in `response_body`. */
export const fieldWriter = (field: DescField, codec: Codec, tellUnknown?: TellUnknown): WriteMessage =>
  counting(codec, tellUnknown, (around) => {
    const write = containerWriter(field, around);
    return (message) => (hasValue(message, field, codec) ? write(contentOf(message, field)) : emptyOf(field));
  });

/** Compiles the writer of a response's body: all of it, or the field that `response_body` names. */
export const bodyWriter = ({ response, method }: Operation, codec: Codec, tellUnknown?: TellUnknown): WriteMessage =>
  response ? fieldWriter(response, codec, tellUnknown) : messageWriter(method.output, codec, tellUnknown);

/** What is answered where the field of `response_body` was not sent. */
const emptyOf = ({ message, fieldKind }: DescField): string =>
  fieldKind === "list" ? "[]" : fieldKind === "map" || (message && isObject(message)) ? "{}" : "null";

/** Whether a message is an object in JSON, whatever it holds. */
const isObject = (message: DescMessage): boolean =>
  !hasCustomJsonRepresentation(message) ||
  message.typeName === StructSchema.typeName ||
  message.typeName === AnySchema.typeName;

/** Whether the answer of `response_body` can be null, when it was not sent or is an enum that is unspecified. */
export const mayBeNull = (field: DescField, codec: Codec): boolean =>
  field.enum?.typeName === NULL_VALUE ||
  field.message?.typeName === ValueSchema.typeName ||
  (emptyOf(field) === "null" &&
    (field.presence !== FeatureSet_FieldPresence.IMPLICIT || field.oneof !== undefined || isHidden(field, codec)));

function compileMessage(desc: DescMessage, around: Around): Write {
  const known = around.compiled.get(desc);
  if (known) return known;
  const write = wellKnownWriter(desc) ?? otherWriter(desc, around);
  around.compiled.set(desc, write);
  return write;
}

function otherWriter(desc: DescMessage, around: Around): Write {
  if (isWrapperDesc(desc)) {
    const write = scalarWriter(desc.fields[0].scalar, around.codec);
    return ({ value }: { value: never }) => write(value);
  }
  return desc.typeName === AnySchema.typeName
    ? anyWriter(around.codec.registry, (type) => compileNested(type, around))
    : objectWriter(desc, around);
}

/** Counts the Any. Each is unpacked by itself, so that no limit of the binary form counts all that are within one another. */
function compileNested(desc: DescMessage, around: Around): (message: Message) => string {
  const write = compileMessage(desc, around);
  return (message) => {
    if (++around.depth > MOST_NESTED) throw tooDeep();
    const text = write(message as never);
    around.depth--;
    return text;
  };
}

function objectWriter(desc: DescMessage, around: Around): Write {
  const { codec } = around;
  let members: ReturnType<typeof memberOf>[] | undefined;
  const writeExtensions = desc.proto.extensionRange.length > 0 ? extensionWriter(desc, around) : undefined;
  const writer = (message: Message) => {
    if (++around.depth > MOST_NESTED) throw tooDeep();
    // Compiled late, because a message may contain itself. Fields that travel as headers are no members.
    members ??= desc.fields.filter((field) => headerOf(field) === "").map((field) => memberOf(field, around));
    let text = "";
    for (const { field, head, write, isNullable } of members)
      if (hasValue(message, field, codec)) {
        if (codec.omitUnpopulated && !isFieldSet(message, field)) continue;
        text += `${text === "" ? "" : ","}${head}${write(contentOf(message, field))}`;
      } else if (isNullable) text += `${text === "" ? "" : ","}${head}null`;
    if (writeExtensions) text += writeExtensions(message, text === "");
    around.depth--;
    return `{${text}}`;
  };
  return writer as Write;
}

const memberOf = (field: DescField, around: Around) => ({
  field,
  /** The name, and the colon behind it. */
  head: `${JSON.stringify(around.codec.originalNames ? field.name : field.jsonName)}:`,
  write: containerWriter(field, around),
  isNullable: isNullable(field, around.codec),
});

/**
 * Whether null is written for a field that is unset: a message, or any field that has presence by itself, as in proto2. As
 * grpc-gateway does, not for one in a oneof, and not where proto3 says `optional`.
 */
export const isNullable = ({ presence, oneof, proto }: DescField, { nullIsUnset, omitUnpopulated }: Codec): boolean =>
  nullIsUnset && !omitUnpopulated && presence !== FeatureSet_FieldPresence.IMPLICIT && !oneof && !proto.proto3Optional;

/** Compiles the writer of a message's extensions that the registry knows: fields of proto2 that another file declares. */
function extensionWriter(desc: DescMessage, around: Around): (message: Message, isFirst: boolean) => string {
  return (message, isFirst) => {
    const registry = around.codec.registry();
    const numbers = new Set(message.$unknown?.map(({ no }) => no));
    const members = [...numbers].flatMap((number) => {
      const extension = registry.getExtensionFor(desc, number);
      if (!extension) return [];
      // It is written like any field; that it has no place of its own in a message is all that differs.
      const write = containerWriter(extension as unknown as DescField, around);
      return [`${JSON.stringify(extension.jsonName)}:${write(getExtension(message, extension) as never)}`];
    });
    return members.length > 0 && !isFirst ? `,${members.join(",")}` : members.join(",");
  };
}

/** Fields without presence always have one. */
function hasValue(message: Message, field: DescField, codec: Codec): boolean {
  if (field.fieldKind === "list" || field.fieldKind === "map") return true;
  const mayBeAbsent = field.presence !== FeatureSet_FieldPresence.IMPLICIT || field.oneof;
  if (mayBeAbsent && !isFieldSet(message, field)) return false;
  return field.fieldKind !== "enum" || contentOf(message, field) !== (0 as never) || !isHidden(field, codec);
}

/** Whether a zero of the field is absent: an enum by short names that says "unspecified", but in a list or map. */
export const isHidden = (field: DescField, { hasFullEnumNames }: Codec): boolean =>
  field.fieldKind === "enum" && !hasFullEnumNames && !hasZeroName(field.enum);

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
  const { message, enum: enumeration, scalar } = field;
  if (enumeration) return enumWriter(enumeration, isOfItems(field), around.codec, around.tellUnknown);
  if (!message) return scalarWriter(scalar as ScalarType, around.codec);
  if (isWrapperDesc(message) && isUnwrapped(field)) return scalarWriter(message.fields[0].scalar, around.codec);
  if (message.typeName === StructSchema.typeName && field.parent?.typeName !== ValueSchema.typeName) return structText;
  return compileMessage(message, around);
}
