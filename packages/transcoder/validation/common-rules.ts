/**
 * The rules (buf.validate) that most contracts get along with, judged without CEL: the same violations as protovalidate
 * finds, in the same order and words.
 */
import {
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  isFieldSet,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence, TimestampSchema } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  FieldRulesSchema,
  field as fieldOption,
  message as messageOption,
  oneof as oneofOption,
  RepeatedRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { all, below, type Check, type Checks, hasOnly, joined, NONE, rulesIn, unless } from "./checks.ts";
import { enumChecks, integers, isInteger, rangeChecks, stringChecks, timestamps } from "./value-rules.ts";

const known = new WeakMap<DescMessage, { readonly check: Check<Message> | undefined }>();

/** Tells which rules a message breaks; undefined where it, or one within it, has rules that are not judged here. */
export function commonCheck(desc: DescMessage): Check<Message> | undefined {
  let found = known.get(desc);
  if (!found) {
    const reached = new Set([desc]);
    for (const { fields } of reached) for (const { message } of fields) if (message) reached.add(message);
    found = { check: [...reached].every(ownCheck) ? ownCheck(desc) : undefined };
    known.set(desc, found);
  }
  return found.check;
}

const compiled = new WeakMap<DescMessage, { readonly check: Check<Message> | undefined }>();

/** By the rules of a message's own fields. What is within them is looked up later: messages may hold their own kind. */
function ownCheck(desc: DescMessage): Check<Message> | undefined {
  let found = compiled.get(desc);
  if (!found) {
    const hasOthers = hasOption(desc, messageOption) || desc.oneofs.some((oneof) => hasOption(oneof, oneofOption));
    const checks = hasOthers ? undefined : joined(desc.fields.map(fieldChecks));
    found = { check: checks && all(checks) };
    compiled.set(desc, found);
  }
  return found.check;
}

function fieldChecks(field: DescField): Checks<Message> {
  const rules = getOption(field, fieldOption);
  if (!hasOnly(rules, ["required", ...kindOf(rules)])) return undefined;
  const checks: Checks<never> = field.fieldKind === "list" ? listChecks(field, rules) : valueChecks(field, rules, []);
  if (!checks) return undefined;
  // Of proto2, as protovalidate tells it.
  const isLegacy = field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
  if (checks.length === 0 && !rules.required && !isLegacy) return [];
  const check = all<never>(checks);
  const missing = rules.required
    ? unless(() => false, "value is required", "required", [FieldRulesSchema.field.required])
    : unless(() => false, "value is required", LEGACY_REQUIRED, []);
  const { localName, oneof } = field;
  // Without presence a zero is a value like any other.
  const isAlwaysThere = field.fieldKind === "list" || field.presence === FeatureSet_FieldPresence.IMPLICIT;
  return [
    (message) => {
      const isSet = isFieldSet(message, field);
      if (!isSet && (rules.required || isLegacy)) return below(field, missing(undefined));
      if (!isSet && !isAlwaysThere) return NONE;
      const held = (message as unknown as Record<string, { value: never }>)[oneof?.localName ?? localName];
      return below(field, check((oneof ? held?.value : held) as never));
    },
  ];
}

/** The rule that proto2 has itself. */
export const LEGACY_REQUIRED = "legacy_required";

const kindOf = ({ type }: FieldRules): string[] => (type.case === undefined ? [] : [type.case]);

function listChecks(field: DescField, { type }: FieldRules): Checks<readonly never[]> {
  if (type.case === undefined) return itemChecks(valueChecks(field, undefined, []));
  if (type.case !== "repeated" || !hasOnly(type.value, ["maxItems", "items"])) return undefined;
  const { maxItems, items } = type.value;
  if (items && !hasOnly(items, kindOf(items))) return undefined;
  const at = [FieldRulesSchema.field.repeated];
  const own: Check<readonly never[]>[] = [];
  if (rulesIn(type.value).includes(RepeatedRulesSchema.field.maxItems)) {
    const words = `must contain no more than ${maxItems} item(s)`;
    const rule = [...at, RepeatedRulesSchema.field.maxItems];
    own.push(unless((list) => list.length <= maxItems, words, "repeated.max_items", rule));
  }
  return joined([own, itemChecks(valueChecks(field, items, [...at, RepeatedRulesSchema.field.items]))]);
}

function itemChecks(checks: Checks<never>): Checks<readonly never[]> {
  if (!checks) return undefined;
  if (checks.length === 0) return [];
  const check = all(checks);
  return [(list) => list.flatMap((item, index) => below({ kind: "list_sub", index }, check(item)))];
}

/** Of a field that is no list, or of an item of a list. `way` leads to the rules. */
function valueChecks(field: DescField, rules: FieldRules | undefined, way: Path): Checks<never> {
  const { message, scalar, enum: desc, fieldKind } = field;
  const { case: kind, value } = rules?.type ?? {};
  if (fieldKind === "map") return kind === undefined && !message ? [] : undefined;
  const within: Check<never>[] = message ? [(inner: Message) => (ownCheck(message) as Check<Message>)(inner)] : [];
  if (kind === undefined) return within;
  const at = [...way, FieldRulesSchema.field[kind]];
  if (kind === "enum" && desc) return enumChecks(desc, value as never, at);
  if (kind === "string" && scalar === ScalarType.STRING) return stringChecks(value as never, at, field.parent.file);
  if (kind === "timestamp" && message?.typeName === TimestampSchema.typeName)
    return joined<never>([within, rangeChecks(value as never, at, kind, timestamps)]);
  const isNumber = scalar !== undefined && isInteger(scalar) && kind === ScalarType[scalar].toLowerCase();
  return isNumber && !field.longAsString ? rangeChecks(value as never, at, kind, integers) : undefined;
}
