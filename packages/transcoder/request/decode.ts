/** From JSON values to messages, strictly by the descriptor. Compiled once per message type. */
import { create, type DescField, type DescMessage, type Message, setExtension } from "@bufbuild/protobuf";
import { AnySchema, isWrapperDesc, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Codec, isOfItems, MOST_NESTED, NULL_VALUE } from "../contract/codec.ts";
import { byName, headerOf, isClearable, isOutputOnly } from "../contract/fields.ts";
import { remembered } from "../contract/remembered.ts";
import { hasTextForm, isDynamic, isUnwrapped, messageFromText } from "../contract/well-known.ts";
import { excerpt } from "../errors/http-error.ts";
import { givenAs, SchemaError, tooDeep, under } from "../errors/violations.ts";
import { keyRules, valueRules } from "../validation/range.ts";
import { anyFromJson, dynamicFromJson, structFromJson } from "./any.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { enumFromJson, holding, scalarFromJson, scalarFromText } from "./scalars.ts";

export interface Handling {
  /** Unknown members are errors; else they are ignored. */
  readonly strict: boolean;
  /** Names of fields in the contract are unknown, unless they are JSON names too. */
  readonly jsonNamesOnly: boolean;
  /** The object is a merge patch (RFC 7396): null on a clearable field leaves it absent. */
  readonly isPatch?: boolean;
  /** Counts the message that is being read, and those that hold it. After an error it is wrong. */
  depth: number;
}

type Read = (value: JsonValue, handling: Handling) => unknown;

/** Whether a field is read from a member. */
export const isUsed = (field: DescField): boolean => headerOf(field) === "" && !isOutputOnly(field);

/**
 * Compiles the reader of an object whose members are these fields. Those that travel as headers are no members. `output` is
 * the record that callers get in answers. They may send it back: members that only it has are ignored.
 */
export function membersReader(fields: readonly DescField[], codec: Codec, output?: DescMessage): Assign {
  const known = byName([...(output?.fields ?? []), ...fields].filter((field) => headerOf(field) === ""));
  const outputOf = ({ jsonName }: DescField) => output?.fields.find((field) => field.jsonName === jsonName)?.message;
  const assigns = new Map(
    fields.filter(isUsed).map((field) => [field, assigner(field, codec, outputOf(field))] as const),
  );
  const assignExtension = extensionAssigner(fields[0]?.parent, codec);
  return (target, value, handling) => {
    const object = objectOf(value);
    for (const [name, item] of object) {
      const field = known.get(name);
      const isOtherName = name !== field?.jsonName;
      if (!field || (isOtherName && handling.jsonNamesOnly)) {
        if (!assignExtension?.(name, item, target, handling) && handling.strict)
          throw new SchemaError("is not known here", "UNKNOWN_FIELD").under(excerpt(name));
        continue;
      }
      if (isOtherName && object.has(field.jsonName))
        throw new SchemaError(givenAs(field.jsonName), "MALFORMED_JSON").under(name);
      const assign = assigns.get(field);
      if (!assign) continue;
      if (item === null && (handling.isPatch ? isClearable(field) || codec.nullIsUnset : isUnset(field, codec)))
        continue;
      under(name, () => assign(target, item, handling));
    }
  };
}

/** Whether null leaves the field as it was. Of a few types it is a value. */
const isUnset = ({ fieldKind, message, enum: desc }: DescField, { nullIsUnset }: Codec): boolean =>
  nullIsUnset &&
  (fieldKind === "list" || fieldKind === "map" || !(message?.typeName === VALUE || desc?.typeName === NULL_VALUE));

const VALUE = ValueSchema.typeName;

/** Reads a value into a message. @throws SchemaError */
export type Assign = (target: Message, value: JsonValue, handling: Handling) => void;

/** Compiles the reader of one field's value into a message; see `membersReader` for `output`. */
export function assigner(field: DescField, codec: Codec, output?: DescMessage): Assign {
  const read = fieldReader(field, codec, output);
  const { localName, oneof } = field;
  if (!oneof)
    return (target, value, handling) => {
      (target as unknown as Record<string, unknown>)[localName] = read(value, handling);
    };
  return (target, value, handling) => {
    const members = target as unknown as Record<string, { case?: string; value?: unknown }>;
    const given = members[oneof.localName]?.case;
    // A part of the same one may have been in the path.
    const other = oneof.fields.find((candidate) => candidate.localName === given && given !== localName);
    if (other) throw new SchemaError(`must not be given together with ${other.jsonName}`);
    members[oneof.localName] = { case: localName, value: read(value, handling) };
  };
}

/** Reads members such as "[acme.priority]", extensions of proto2; undefined where the message has none. */
function extensionAssigner(desc: DescMessage | undefined, codec: Codec) {
  if (!desc || desc.proto.extensionRange.length === 0) return undefined;
  return (name: string, item: JsonValue, target: Message, handling: Handling): boolean => {
    const extension = /^\[.*\]$/.test(name) ? codec.registry().getExtension(name.slice(1, -1)) : undefined;
    if (extension?.extendee.typeName !== desc.typeName) return false;
    // It would be read, but no path of a mask can name it, so the service would leave it as it was.
    if (handling.isPatch) throw new SchemaError("can't be changed by a patch: it is an extension").under(excerpt(name));
    // It is read like any field; that it has no place of its own in a message is all that differs.
    const read = fieldReader(extension as unknown as DescField, codec, undefined);
    if (!(item === null && codec.nullIsUnset))
      under(excerpt(name), () => setExtension(target, extension, read(item, handling)));
    return true;
  };
}

function fieldReader(field: DescField, codec: Codec, output: DescMessage | undefined): Read {
  const read = valueReader(field, codec, output);
  if (field.fieldKind === "list")
    return notNull((value, handling) => {
      if (!Array.isArray(value)) throw new SchemaError("must be an array");
      const whole = asWhole(handling);
      return value.map((item, i) => under(`[${i}]`, () => read(item, whole)));
    });
  if (field.fieldKind === "map") {
    const readKey = scalarFromText(field.mapKey, keyRules(field));
    return notNull((value, handling) => {
      const object = objectOf(value);
      const whole = asWhole(handling);
      // fromEntries makes "__proto__" a key like any other.
      const entries = Object.fromEntries(
        [...object].map(([key, item]) =>
          under(`[${JSON.stringify(excerpt(key))}]`, () => [readKey(key), read(item, whole)]),
        ),
      );
      if (Object.keys(entries).length < object.size) throw new SchemaError("has a key twice: 0 and -0");
      return entries;
    });
  }
  return read;
}

/** A patch replaces lists and maps, so nothing within them is a patch. */
const asWhole = (handling: Handling): Handling => (handling.isPatch ? { ...handling, isPatch: false } : handling);

const notNull =
  (read: Read): Read =>
  (value, handling) => {
    if (value === null) throw new SchemaError("must not be null");
    return read(value, handling);
  };

/** Counts a message within another. */
const counted =
  (read: Read): Read =>
  (value, handling) => {
    if (handling.depth === MOST_NESTED) throw tooDeep();
    handling.depth++;
    const message = read(value, handling);
    handling.depth--;
    return message;
  };

/** Compiles the reader of what a field holds, of a list or map of an item. */
function valueReader(field: DescField, codec: Codec, output: DescMessage | undefined): Read {
  const { message, enum: enumeration, scalar } = field;
  if (enumeration) {
    const read = enumFromJson(enumeration, isOfItems(field), codec);
    return enumeration.typeName === NULL_VALUE ? read : notNull(read);
  }
  if (!message) return notNull(holding(field, scalarFromJson(scalar, valueRules(field), codec)));
  if (message.typeName === VALUE) return counted(messageReader(message, codec));
  if (isWrapperDesc(message)) {
    const read = counted(notNull(scalarFromJson(message.fields[0].scalar, valueRules(field), codec)));
    return isUnwrapped(field) ? read : (value, handling) => create(message, { value: read(value, handling) } as never);
  }
  if (message.typeName === StructSchema.typeName && field.parent?.typeName !== VALUE)
    return counted(notNull((value, { depth }) => structFromJson(value, depth)));
  return counted(notNull(messageReader(message, codec, output)));
}

/** By the codec, the message that is read, then by the one that is shown. */
const readers = remembered((codec: Codec) =>
  remembered((desc: DescMessage) =>
    remembered((output: DescMessage) => wellKnownReader(desc, codec) ?? ownReader(desc, codec, output)),
  ),
);

/** Compiles the reader of a message by itself, be it of a well-known type. */
export const messageReader = (desc: DescMessage, codec: Codec, output = desc): Read => readers(codec)(desc)(output);

function ownReader(desc: DescMessage, codec: Codec, output: DescMessage): Read {
  let readMembers: Assign | undefined;
  return (value, handling) => {
    const message = create(desc);
    readMembers ??= membersReader(desc.fields, codec, output); // compiled late, because a message may contain itself
    readMembers(message, value, handling);
    return message;
  };
}

function wellKnownReader(desc: DescMessage, codec: Codec): Read | undefined {
  if (hasTextForm(desc)) return messageFromText(desc, true);
  if (isDynamic(desc)) return (value, { depth }) => dynamicFromJson(desc, value, depth);
  if (desc.typeName === AnySchema.typeName)
    return (value, handling) =>
      anyFromJson(
        objectOf(value),
        codec.registry(),
        (type, content) => counted(messageReader(type, codec))(content, handling) as Message,
      );
  if (!isWrapperDesc(desc)) return undefined;
  const read = notNull(scalarFromJson(desc.fields[0].scalar, undefined, codec));
  return (value, handling) => create(desc, { value: read(value, handling) } as never);
}

function objectOf(value: JsonValue): JsonObject {
  if (!(value instanceof Map)) throw new SchemaError("must be an object");
  return value;
}
