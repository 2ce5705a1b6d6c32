/**
 * Checks messages against the rules of their schemas (buf.validate): first how much each field holds, before any rule walks it.
 */
import { create, type DescField, type DescMessage, getOption, isFieldSet, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { type FieldMask, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { assignAt, heldIn } from "../contract/field-path.ts";
import { remembered } from "../contract/remembered.ts";
import { commonCheck, LEGACY_REQUIRED } from "./common-rules.ts";
import { MAX_PATHS, maskedIn, masksOut, maskViolations } from "./mask.ts";
import type { Violation } from "./violation.ts";

/** What judges any rule, once a contract needed it: its start takes longer than that of all the rest. */
let protovalidate: typeof import("./protovalidate.ts") | undefined;

/**
 * To be called before messages of these types are validated, and waited for where it has something to load. A rule that
 * makes no sense is found here.
 */
export function prepareValidation(schemas: readonly DescMessage[]): Promise<void> | undefined {
  const others = schemas.filter((schema) => !commonCheck(schema));
  if (others.length === 0) return undefined;
  return import("./protovalidate.ts").then((loaded) => {
    protovalidate = loaded;
    loaded.ensurePatterns(others);
    // Rules are compiled by the first message.
    for (const schema of others) validate(schema, create(schema));
  });
}

function judge(schema: DescMessage, message: Message): readonly Violation[] {
  const check = commonCheck(schema);
  if (check) return check(message);
  if (!protovalidate) throw new Error(`prepareValidation was not called for ${schema.typeName}, or not waited for.`);
  return protovalidate.judge(schema, message);
}

/**
 * Checks a message against the rules of its schema (buf.validate). An update mask is respected: rules on fields that it
 * does not name don't count. With `judgesMask` its own paths are checked, as names of the resource's fields, of which those that
 * can't be removed need a value. An empty result means that the message is valid.
 *
 * Sizes are judged first: of a value that is too large nothing else is looked at, so that the work and the number of
 * violations are bounded by the contract and not by what was sent.
 */
export function validate(schema: DescMessage, message: Message, judgesMask = true): Violation[] {
  const found = sizesFirst(judge(schema, curtail(schema, message)));
  const masked = maskedIn(schema);
  // Without a mask all fields are meant.
  if (!masked || !isFieldSet(message, masked.maskField)) return found;
  const { paths } = heldIn(message, masked.maskField) as FieldMask;
  const mask = { ...masked, paths };
  const isMaskedOut = masksOut(mask);
  // Without a field that proto2 requires there is no message at all.
  const counted = found.filter((violation) => violation.ruleId === LEGACY_REQUIRED || !isMaskedOut(violation));
  if (!judgesMask) return counted;
  const own = maskViolations(mask, message).filter(
    (violation) => !counted.some((other) => other.field.at(-1) === violation.field.at(-1)),
  );
  return [...counted, ...own];
}

const isSize = ({ ruleId }: Violation): boolean =>
  /\.(max_len|len|max_bytes|len_bytes|max_items|max_pairs)$/.test(ruleId);

/** Leaves out what else is wrong with values that are too large. */
function sizesFirst(violations: readonly Violation[]): Violation[] {
  const tooLarge = new Set(violations.filter(isSize).map(({ field }) => pathToString(field)));
  if (tooLarge.size === 0) return [...violations];
  const isWithin = (path: Violation["field"]) =>
    path.some((_, index) => tooLarge.has(pathToString(path.slice(0, index + 1))));
  return violations.filter((violation) => isSize(violation) || !isWithin(violation.field));
}

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
  const type = rules?.type;
  switch (type?.case) {
    case "repeated":
      return { size: orInfinite(type.value.maxItems), items: byRules(type.value.items) };
    case "map": {
      const { maxPairs, keys, values } = type.value;
      return { size: orInfinite(maxPairs), items: byRules(values), keys: byRules(keys) };
    }
    case "string": {
      // A character has at least one byte.
      const { maxLen, len, maxBytes, lenBytes, in: allowed } = type.value;
      return { size: Math.min(longest(allowed), ...[maxLen, len, maxBytes, lenBytes].map(orInfinite)) };
    }
    case "bytes": {
      const { maxLen, len, in: allowed } = type.value;
      return { size: Math.min(longest(allowed), ...[maxLen, len].map(orInfinite)) };
    }
    default:
      return UNLIMITED;
  }
}

// 0 is what an absent rule reads as.
const orInfinite = (limit: bigint): number => (limit === 0n ? Number.POSITIVE_INFINITY : Number(limit));
const longest = (allowed: readonly { readonly length: number }[]): number =>
  allowed.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...allowed.map(({ length }) => length));

type Curtail = (value: unknown) => unknown;

/**
 * The message, with each value that is larger than its field can hold cut to one unit more than that: it breaks the same
 * rule as before, and no other rule has to walk the rest. Without such values it is the message itself.
 */
export function curtail<M extends Message>(desc: DescMessage, message: M): M {
  let copy: M | undefined;
  for (const { field, cut } of curtailersOf(desc)) {
    const value = heldIn(message, field);
    if (value === undefined) continue;
    const shorter = cut(value);
    if (shorter === value) continue;
    copy ??= Object.assign(create(desc), message);
    assignAt(copy, [field], shorter);
  }
  return copy ?? message;
}

const curtailersOf = remembered(({ fields }: DescMessage) =>
  fields.flatMap((field) => {
    const cut = curtailer(field, limitOf(field));
    return cut ? [{ field, cut }] : [];
  }),
);

/** Undefined for what is never too large. */
function curtailer(field: DescField, { size, items = UNLIMITED, keys = UNLIMITED }: Limit): Curtail | undefined {
  const one = oneCurtailer(field, field.fieldKind === "list" || field.fieldKind === "map" ? items : { size });
  if (field.fieldKind === "list")
    return (value) => {
      const list = value as unknown[];
      const fewer = list.length > size ? list.slice(0, size + 1) : list;
      const cut = one ? fewer.map(one) : fewer;
      return cut.some((item, i) => item !== fewer[i]) ? cut : fewer;
    };
  if (field.fieldKind === "map")
    return (value) => {
      const entries = Object.entries(value as Record<string, unknown>);
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

/** A character has one or two UTF-16 units. */
function shorten(text: string, size: number): string {
  if (text.length <= size) return text;
  const characters = [...text.slice(0, 2 * (size + 1))];
  return characters.length > size ? characters.slice(0, size + 1).join("") : text;
}
