/**
 * The rules (buf.validate) that most contracts get along with, judged without CEL: the same violations as protovalidate
 * finds, in the same order and words.
 */
import {
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  getOption,
  hasOption,
  isFieldSet,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import {
  type EnumRules,
  EnumRulesSchema,
  type FieldRules,
  FieldRulesSchema,
  field as fieldOption,
  file_buf_validate_validate,
  type Int64Rules,
  message as messageOption,
  oneof as oneofOption,
  predefined,
  RepeatedRulesSchema,
  type StringRules,
  StringRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { RE2JS } from "@bufbuild/re2";
import { heldIn } from "../contract/field-path.ts";
import { remembered } from "../contract/remembered.ts";
import { filesBelow } from "../descriptors.ts";
import type { Violation } from "./violation.ts";

/** What is wrong with a value, told by the way from there. */
type Check<T> = (value: T) => readonly Violation[];
/** Undefined where a rule has no check. */
type Checks<T> = readonly Check<T>[] | undefined;

/** Tells which rules a message breaks; undefined where it, or one within it, has rules that are not judged here. */
export const commonCheck = remembered((desc: DescMessage): Check<Message> | undefined => {
  const reached = new Set([desc]);
  for (const { fields } of reached) for (const { message } of fields) if (message) reached.add(message);
  return [...reached].every(ownCheck) ? ownCheck(desc) : undefined;
});

/** By the rules of a message's own fields. What is within them is looked up later: messages may hold their own kind. */
const ownCheck = remembered((desc: DescMessage): Check<Message> | undefined => {
  const hasOthers = hasOption(desc, messageOption) || desc.oneofs.some((oneof) => hasOption(oneof, oneofOption));
  const checks = hasOthers ? undefined : joined(desc.fields.map(fieldChecks));
  return checks && all(checks);
});

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
  // Without presence a zero is a value like any other.
  const isAlwaysThere = field.fieldKind === "list" || field.presence === FeatureSet_FieldPresence.IMPLICIT;
  return [
    (message) => {
      const isSet = isFieldSet(message, field);
      if (!isSet && (rules.required || isLegacy)) return below(field, missing(undefined));
      if (!isSet && !isAlwaysThere) return NONE;
      return below(field, check(heldIn(message, field) as never));
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
  const own = standard<readonly never[]>(type.value, type.case, at);
  return joined([
    own(
      RepeatedRulesSchema.field.maxItems,
      `must contain no more than ${maxItems} item(s)`,
      (list) => list.length <= maxItems,
    ),
    itemChecks(valueChecks(field, items, [...at, RepeatedRulesSchema.field.items])),
  ]);
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

function enumChecks({ values }: DescEnum, rules: EnumRules, at: Path): Checks<number> {
  const { definedOnly, notIn } = EnumRulesSchema.field;
  if (!hasOnly(rules, ["definedOnly", "notIn"])) return undefined;
  const check = standard<number>(rules, "enum", at);
  const defined = new Set(values.map(({ number }) => number));
  return [
    ...(rules.definedOnly
      ? check(definedOnly, "value must be one of the defined enum values", (value) => defined.has(value))
      : []),
    ...check(notIn, `must not be in list [${rules.notIn.join(", ")}]`, (value) => !rules.notIn.includes(value)),
  ];
}

/** `file` is where the field stands, which knows the rules that its project predefines. */
function stringChecks(rules: StringRules, at: Path, file: DescFile): Checks<string> {
  const { minLen, maxLen, in: allowed } = StringRulesSchema.field;
  if (rulesIn(rules).some((rule) => ![minLen, maxLen, allowed].includes(rule))) return undefined;
  const check = standard<string>(rules, "string", at);
  const [least, most] = [Number(rules.minLen), Number(rules.maxLen)];
  return joined([
    check(minLen, `must be at least ${rules.minLen} characters`, (text) => !hasAtMost(text, least - 1)),
    check(maxLen, `must be at most ${rules.maxLen} characters`, (text) => hasAtMost(text, most)),
    check(allowed, `must be in list [${rules.in.join(", ")}]`, (text) => rules.in.includes(text)),
    ...(rules.$unknown ?? []).map(({ no }) => patternChecks(no, at, file)),
  ]);
}

/** A character has one or two UTF-16 units. */
const hasAtMost = (text: string, characters: number): boolean =>
  text.length <= characters || (text.length <= 2 * characters && [...text].length <= characters);

/** The pattern of an expression that does nothing but match one. */
export const matchIn = (expression: string): string[] => {
  const literal = /^this\.matches\('((?:[^'\\]|\\\\)*)'\)$/.exec(expression)?.[1];
  return literal === undefined ? [] : [literal.replaceAll("\\\\", "\\")];
};

/** Of a rule that a project predefines, where all that its expressions do is to match a pattern. */
function patternChecks(number: number, at: Path, file: DescFile): Checks<string> {
  const extension = filesBelow([file])
    .flatMap(({ extensions }) => extensions)
    .find((one) => one.extendee.typeName === StringRulesSchema.typeName && one.number === number);
  if (!extension) return undefined;
  return joined(
    getOption(extension, predefined).cel.map(({ expression, message, id }) => {
      const [re2] = matchIn(expression);
      if (re2 === undefined || message === "") return undefined;
      let pattern: RE2JS | undefined;
      const matches = (text: string) => {
        // To compile it takes milliseconds, and many a process never gets a value.
        pattern ??= RE2JS.compile(re2);
        return pattern.test(text);
      };
      return [unless(matches, message, id, [...at, extension])];
    }),
  );
}

/** Of values that have an order: below 0 where the first one is less. */
interface Ordered<T> {
  readonly compare: (a: T, b: T) => number;
  readonly words: (value: T) => string;
}

export const integers: Ordered<bigint | number> = { compare: (a, b) => (a < b ? -1 : a > b ? 1 : 0), words: String };
const timestamps: Ordered<Timestamp> = {
  compare: (a, b) => integers.compare(a.seconds, b.seconds) || a.nanos - b.nanos,
  words: (value) => toJson(TimestampSchema, value),
};

export const isInteger = (scalar: ScalarType): boolean => /INT|FIXED/.test(ScalarType[scalar]);

export const LIMITS = {
  gt: { holds: (compared: number) => compared > 0, words: "greater than" },
  gte: { holds: (compared: number) => compared >= 0, words: "greater than or equal to" },
  lt: { holds: (compared: number) => compared < 0, words: "less than" },
  lte: { holds: (compared: number) => compared <= 0, words: "less than or equal to" },
} as const;

/** The rules of any type whose values have an order are like those of int64. Two limits are one rule, told by the lower one. */
function rangeChecks<T>(rules: Int64Rules, at: Path, kind: string, { compare, words }: Ordered<T>): Checks<T> {
  if (!hasOnly(rules, Object.keys(LIMITS))) return undefined;
  const limits = [rules.greaterThan, rules.lessThan].flatMap(({ case: name, value }) =>
    name ? { name, value: value as T, ...LIMITS[name] } : [],
  );
  const [low, high] = limits;
  // With the upper limit below the lower one, what is between them is excluded.
  if (low && high && compare(high.value, low.value) < 0) return undefined;
  const rule = rulesIn(rules).find(({ localName }) => localName === low?.name);
  if (!low || !rule) return [];
  const holds = (value: T) => limits.every((limit) => limit.holds(compare(value, limit.value)));
  const sentence = limits.map((limit) => `${limit.words} ${words(limit.value)}`).join(" and ");
  const id = limits.map(({ name }) => name).join("_");
  return [unless(holds, `must be ${sentence}`, `${kind}.${id}`, [...at, rule])];
}

const NONE: readonly Violation[] = [];

/** The check of one rule. `rule` leads to it from buf.validate.FieldRules. */
function unless<T>(holds: (value: T) => boolean, message: string, ruleId: string, rule: Path): Check<T> {
  const broken = [{ message, ruleId, rule, field: [], forKey: false }];
  return (value) => (holds(value) ? NONE : broken);
}

const joined = <T>(parts: readonly Checks<T>[]): Checks<T> =>
  parts.every((part) => part !== undefined) ? parts.flat() : undefined;

const all =
  <T>(checks: readonly Check<T>[]): Check<T> =>
  (value) => {
    let found = NONE;
    for (const check of checks) {
      const more = check(value);
      if (more.length > 0) found = [...found, ...more];
    }
    return found;
  };

const below = (step: Path[number], found: readonly Violation[]): readonly Violation[] =>
  found.length === 0 ? NONE : found.map((violation) => ({ ...violation, field: [step, ...violation.field] }));

/** The check of one of these rules, where it is set. */
const standard =
  <T>(rules: Message, kind: string, at: Path) =>
  (rule: DescField, words: string, holds: (value: T) => boolean): Check<T>[] =>
    rulesIn(rules).includes(rule) ? [unless(holds, words, `${kind}.${rule.name}`, [...at, rule])] : [];

const kindsOfRules = new Map(file_buf_validate_validate.messages.map((desc) => [desc.typeName, desc]));

/** The standard rules that are set. */
const rulesIn = (rules: Message) =>
  (kindsOfRules.get(rules.$typeName)?.fields ?? []).filter((rule) => isFieldSet(rules, rule));

/** Whether no other rules are set than these; those that a project predefines are unknown fields. */
const hasOnly = (rules: Message, names: readonly string[]): boolean =>
  !rules.$unknown?.length && rulesIn(rules).every(({ localName }) => names.includes(localName));
