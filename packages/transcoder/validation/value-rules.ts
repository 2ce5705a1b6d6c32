/** Rules for a single value. */
import { type DescEnum, type DescFile, getOption, ScalarType, toJson } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import {
  type EnumRules,
  EnumRulesSchema,
  type Int64Rules,
  predefined,
  type StringRules,
  StringRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { RE2JS } from "@bufbuild/re2";
import { filesBelow } from "../descriptors.ts";
import { type Check, type Checks, hasOnly, joined, rulesIn, unless } from "./checks.ts";

export function enumChecks({ values }: DescEnum, rules: EnumRules, at: Path): Checks<number> {
  const { definedOnly, notIn } = EnumRulesSchema.field;
  if (!hasOnly(rules, ["definedOnly", "notIn"])) return undefined;
  const checks: Check<number>[] = [];
  if (rules.definedOnly) {
    const defined = new Set(values.map(({ number }) => number));
    const words = "value must be one of the defined enum values";
    checks.push(unless((value) => defined.has(value), words, "enum.defined_only", [...at, definedOnly]));
  }
  if (rules.notIn.length > 0) {
    const words = `must not be in list [${rules.notIn.join(", ")}]`;
    checks.push(unless((value) => !rules.notIn.includes(value), words, "enum.not_in", [...at, notIn]));
  }
  return checks;
}

/** `file` is where the field stands, which knows the rules that its project predefines. */
export function stringChecks(rules: StringRules, at: Path, file: DescFile): Checks<string> {
  const { minLen, maxLen, in: allowed } = StringRulesSchema.field;
  const set = rulesIn(rules);
  if (set.some((rule) => ![minLen, maxLen, allowed].includes(rule))) return undefined;
  const checks: Check<string>[] = [];
  if (set.includes(minLen)) {
    const words = `must be at least ${rules.minLen} characters`;
    const least = Number(rules.minLen);
    checks.push(unless((text) => !hasAtMost(text, least - 1), words, "string.min_len", [...at, minLen]));
  }
  if (set.includes(maxLen)) {
    const words = `must be at most ${rules.maxLen} characters`;
    const most = Number(rules.maxLen);
    checks.push(unless((text) => hasAtMost(text, most), words, "string.max_len", [...at, maxLen]));
  }
  if (set.includes(allowed)) {
    const words = `must be in list [${rules.in.join(", ")}]`;
    checks.push(unless((text) => rules.in.includes(text), words, "string.in", [...at, allowed]));
  }
  return joined([checks, ...(rules.$unknown ?? []).map(({ no }) => patternChecks(no, at, file))]);
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
export const timestamps: Ordered<Timestamp> = {
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
export function rangeChecks<T>(rules: Int64Rules, at: Path, kind: string, { compare, words }: Ordered<T>): Checks<T> {
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
