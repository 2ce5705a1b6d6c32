/** How much a field can hold by the rules of its schema (buf.validate), judged before any rule walks it. */
import { create, type DescField, type DescMessage, getOption, type Message } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** Most paths of a google.protobuf.FieldMask, whose own fields can't carry rules. */
export const MAX_PATHS = 100;

/** The most that a value can hold; infinite where no rule says so. */
export interface Limit {
  /** Unicode characters of a string, bytes of bytes, items of a list, entries of a map. */
  readonly size: number;
  /** Of each item of a list, of each value of a map. */
  readonly items?: Limit;
  /** Of each key of a map. */
  readonly keys?: Limit;
}

const UNLIMITED: Limit = { size: Number.POSITIVE_INFINITY };

export function limitOf(field: DescField): Limit {
  if (field.parent.typeName === FieldMaskSchema.typeName) return { size: MAX_PATHS };
  return byRules(getOption(field, fieldRules));
}

function byRules(rules: FieldRules | undefined): Limit {
  if (rules?.type.case === "repeated") {
    const { maxItems, items } = rules.type.value;
    return { size: orInfinite(maxItems), items: byRules(items) };
  }
  if (rules?.type.case === "map") {
    const { maxPairs, keys, values } = rules.type.value;
    return { size: orInfinite(maxPairs), items: byRules(values), keys: byRules(keys) };
  }
  if (rules?.type.case === "string") {
    // A character has at least one byte.
    const { maxLen, len, maxBytes, lenBytes, in: allowed } = rules.type.value;
    return { size: Math.min(longest(allowed), ...[maxLen, len, maxBytes, lenBytes].map(orInfinite)) };
  }
  if (rules?.type.case === "bytes") {
    const { maxLen, len, in: allowed } = rules.type.value;
    return { size: Math.min(longest(allowed), ...[maxLen, len].map(orInfinite)) };
  }
  return UNLIMITED;
}

// 0 is what an absent rule reads as.
const orInfinite = (limit: bigint): number => (limit === 0n ? Number.POSITIVE_INFINITY : Number(limit));
const longest = (allowed: readonly { readonly length: number }[]): number =>
  allowed.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...allowed.map(({ length }) => length));

type Curtail = (value: unknown) => unknown;
type Members = Record<string, unknown>;

/**
 * The message, with each value that is larger than its field can hold cut to one unit more than that: it breaks the same
 * rule as before, and no other rule has to walk the rest. Without such values it is the message itself.
 */
export function curtail<M extends Message>(desc: DescMessage, message: M): M {
  let copy: Members | undefined;
  for (const { field, cut } of curtailersOf(desc)) {
    const { localName, oneof } = field;
    const held = (message as unknown as Members)[oneof?.localName ?? localName] as Members | undefined;
    if (held === undefined || (oneof && held.case !== localName)) continue;
    const value = oneof ? held.value : held;
    const shorter = cut(value);
    if (shorter === value) continue;
    copy ??= Object.assign(create(desc), message) as unknown as Members;
    copy[oneof?.localName ?? localName] = oneof ? { case: localName, value: shorter } : shorter;
  }
  return (copy ?? message) as M;
}

const compiled = new WeakMap<DescMessage, readonly { field: DescField; cut: Curtail }[]>();

function curtailersOf(desc: DescMessage): readonly { field: DescField; cut: Curtail }[] {
  let known = compiled.get(desc);
  if (!known) {
    known = desc.fields.flatMap((field) => {
      const cut = curtailer(field, limitOf(field));
      return cut ? [{ field, cut }] : [];
    });
    compiled.set(desc, known);
  }
  return known;
}

/** Undefined for what is never too large. */
function curtailer(field: DescField, { size, items = UNLIMITED, keys = UNLIMITED }: Limit): Curtail | undefined {
  const one = oneCurtailer(field, field.fieldKind === "list" || field.fieldKind === "map" ? items : { size });
  if (field.fieldKind === "list")
    return (value) => {
      const list = value as unknown[];
      const fewer = list.length > size ? list.slice(0, size + 1) : list;
      return one ? sameUnlessCut(fewer, fewer.map(one)) : fewer;
    };
  if (field.fieldKind === "map")
    return (value) => {
      const entries = Object.entries(value as Members);
      const fewer = entries.slice(0, size + 1).map(([key, item]) => [shorten(key, keys.size), one ? one(item) : item]);
      const isCut =
        fewer.length < entries.length ||
        fewer.some(([key, item], i) => key !== entries[i]?.[0] || item !== entries[i]?.[1]);
      return isCut ? Object.fromEntries(fewer) : value;
    };
  return one;
}

function oneCurtailer({ message, scalar }: DescField, { size }: Limit): Curtail | undefined {
  if (message) return (value) => curtail(message, value as Message);
  if (scalar === undefined || size === Number.POSITIVE_INFINITY) return undefined;
  return (value) =>
    typeof value === "string"
      ? shorten(value, size)
      : value instanceof Uint8Array && value.length > size
        ? value.subarray(0, size + 1)
        : value;
}

const sameUnlessCut = (list: unknown[], cut: unknown[]): unknown[] =>
  cut.some((item, i) => item !== list[i]) ? cut : list;

/** A character has one or two UTF-16 units. */
function shorten(text: string, size: number): string {
  if (text.length <= size) return text;
  const characters = [...text.slice(0, 2 * (size + 1))];
  return characters.length > size ? characters.slice(0, size + 1).join("") : text;
}
