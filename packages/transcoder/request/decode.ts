/** From JSON values to messages, strictly by the descriptor. Compiled once per message type. */
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { EXACT } from "../contract/codec.ts";
import { isOfItems } from "../contract/enums.ts";
import { byName, headerOf, isClearable, isOutputOnly } from "../contract/fields.ts";
import { excerpt } from "../validation/excerpt.ts";
import { keyRules, valueRules } from "../validation/range.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { enumFromJson, scalarFromJson, scalarFromText } from "./scalars.ts";
import { givenAs, SchemaError, under } from "./schema-error.ts";
import { hasTextForm, messageFromText } from "./well-known.ts";

export interface Handling {
  /** Unknown members are errors; else they are ignored. */
  readonly strict: boolean;
  /** Names of fields in the contract are unknown, unless they are JSON names too. */
  readonly jsonNamesOnly: boolean;
}

type Read = (value: JsonValue, handling: Handling) => unknown;

/**
 * Reads the members of an object into a message. With `mask` the object is a merge patch (RFC 7396): the names of the
 * fields that it touches are added to the mask, and null on a clearable field leaves it absent.
 *
 * @throws SchemaError
 */
export type ReadMembers = (value: JsonValue, target: Message, handling: Handling, mask?: string[]) => void;

/** Whether a field is read from a member. */
export const isUsed = (field: DescField): boolean => headerOf(field) === "" && !isOutputOnly(field);

/**
 * Compiles the reader of an object whose members are these fields. Those that travel as headers are no members. `output` is
 * the record that callers are answered with: what it has beyond the fields may be sent back, and is not looked at.
 */
export function membersReader(fields: readonly DescField[], output?: DescMessage): ReadMembers {
  const known = byName([...(output?.fields ?? []), ...fields].filter((field) => headerOf(field) === ""));
  const outputOf = ({ jsonName }: DescField) => output?.fields.find((field) => field.jsonName === jsonName)?.message;
  const assigns = new Map(fields.filter(isUsed).map((field) => [field, assigner(field, outputOf(field))] as const));
  return (value, target, handling, mask) => {
    const object = objectOf(value);
    for (const [name, item] of object) {
      const field = known.get(name);
      const isOtherName = name !== field?.jsonName;
      if (!field || (isOtherName && handling.jsonNamesOnly)) {
        if (handling.strict) throw new SchemaError("is not known here", "UNKNOWN_FIELD").under(excerpt(name));
        continue;
      }
      if (isOtherName && object.has(field.jsonName))
        throw new SchemaError(givenAs(field.jsonName), "MALFORMED_JSON").under(name);
      const assign = assigns.get(field);
      if (!assign) continue;
      mask?.push(field.name);
      if (item === null && mask && isClearable(field)) continue;
      under(name, () => assign(target, item, handling));
    }
  };
}

export type Assign = (target: Message, value: JsonValue, handling: Handling) => void;

/** Compiles the reader of one field's value into a message; see `membersReader` for `output`. */
export function assigner(field: DescField, output?: DescMessage): Assign {
  const read = fieldReader(field, output);
  const { localName, oneof } = field;
  if (!oneof)
    return (target, value, handling) => {
      (target as unknown as Record<string, unknown>)[localName] = read(value, handling);
    };
  return (target, value, handling) => {
    const members = target as unknown as Record<string, { case?: string; value?: unknown }>;
    const other = oneof.fields.find((candidate) => candidate.localName === members[oneof.localName]?.case);
    if (other) throw new SchemaError(`must not be given together with ${other.jsonName}`);
    members[oneof.localName] = { case: localName, value: read(value, handling) };
  };
}

function fieldReader(field: DescField, output: DescMessage | undefined): Read {
  const read = notNull(valueReader(field, output));
  if (field.fieldKind === "list")
    return notNull((value, handling) => {
      if (!Array.isArray(value)) throw new SchemaError("must be an array");
      return value.map((item, i) => under(`[${i}]`, () => read(item, handling)));
    });
  if (field.fieldKind === "map") {
    const readKey = scalarFromText(field.mapKey, keyRules(field));
    return notNull((value, handling) =>
      // fromEntries makes "__proto__" a key like any other.
      Object.fromEntries(
        [...objectOf(value)].map(([key, item]) =>
          under(`[${JSON.stringify(excerpt(key))}]`, () => [readKey(key), read(item, handling)]),
        ),
      ),
    );
  }
  return read;
}

const notNull =
  (read: Read): Read =>
  (value, handling) => {
    if (value === null) throw new SchemaError("must not be null");
    return read(value, handling);
  };

function valueReader(field: DescField, output: DescMessage | undefined): Read {
  const { message, enum: enumeration, scalar } = field;
  if (enumeration) return enumFromJson(enumeration, isOfItems(field), EXACT);
  if (!message) return scalarFromJson(scalar, valueRules(field));
  if (hasTextForm(message)) return messageFromText(message, true);
  return messageReader(message, output);
}

/** By the message that is read, then by the one that is shown. */
const compiled = new WeakMap<DescMessage, WeakMap<DescMessage, Read>>();

function messageReader(desc: DescMessage, output = desc): Read {
  const byOutput = compiled.get(desc) ?? new WeakMap<DescMessage, Read>();
  compiled.set(desc, byOutput);
  const known = byOutput.get(output);
  if (known) return known;
  let readMembers: ReadMembers | undefined;
  const read: Read = (value, handling) => {
    const message = create(desc);
    readMembers ??= membersReader(desc.fields, output); // compiled late, because a message may contain itself
    readMembers(value, message, handling);
    return message;
  };
  byOutput.set(output, read);
  return read;
}

function objectOf(value: JsonValue): JsonObject {
  if (!(value instanceof Map)) throw new SchemaError("must be an object");
  return value;
}
