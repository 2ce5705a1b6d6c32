/**
 * From the rules of buf.validate to keywords of JSON Schema, and from patterns of RE2 to those of ECMA-262. What has no keyword or
 * pattern is left to the description.
 */
import {
  createRegistry,
  type DescExtension,
  type DescFile,
  type DescMessage,
  getOption,
  type Message,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import {
  type FieldRules,
  file_buf_validate_validate,
  Ignore,
  predefined,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { matchIn } from "../validation/common-rules.ts";
import type { JsonObject } from "./json.ts";

/** What holds numbers in doubles, as JavaScript does, rounds an integer beyond these: it is told in words. */
const LOWEST = BigInt(Number.MIN_SAFE_INTEGER);
const HIGHEST = BigInt(Number.MAX_SAFE_INTEGER);
const isExact = (value: unknown) => typeof value !== "bigint" || (value >= LOWEST && value <= HIGHEST);

function atLeast(value: unknown): JsonObject {
  if (isExact(value)) return { minimum: value as number | bigint };
  return { minimum: (value as bigint) > HIGHEST ? HIGHEST : undefined, description: `At least ${value}.` };
}
function atMost(value: unknown): JsonObject {
  if (isExact(value)) return { maximum: value as number | bigint };
  return { maximum: (value as bigint) < LOWEST ? LOWEST : undefined, description: `At most ${value}.` };
}
/** No other than these. */
const only = (values: readonly unknown[], keyword: JsonObject): JsonObject =>
  values.every(isExact) ? keyword : { description: `Only ${values.join(", ")}.` };

/** Rules are spelled alike for every type that has them, so they are told apart by name alone. */
const keywords: Readonly<Record<string, (value: unknown) => JsonObject>> = {
  const: (value) => only([value], { const: value as string }),
  in: (values) => only(values as string[], { enum: values as string[] }),
  gte: atLeast,
  lte: atMost,
  gt: (value) => (typeof value === "bigint" ? atLeast(value + 1n) : { exclusiveMinimum: value as number }),
  lt: (value) => (typeof value === "bigint" ? atMost(value - 1n) : { exclusiveMaximum: value as number }),
  len: (value) => ({ minLength: Number(value), maxLength: Number(value) }),
  min_len: (value) => (value ? { minLength: Number(value) } : {}),
  max_len: (value) => ({ maxLength: Number(value) }),
  min_items: (value) => (value ? { minItems: Number(value) } : {}),
  max_items: (value) => ({ maxItems: Number(value) }),
  unique: (value) => ({ uniqueItems: value as boolean }),
  min_pairs: (value) => (value ? { minProperties: Number(value) } : {}),
  max_pairs: (value) => ({ maxProperties: Number(value) }),
};

/** Keywords for a field's value; those for the items of a list are not among them. */
export function ruleKeywords(
  { type, cel, celExpression, ignore }: FieldRules,
  rulesFiles: readonly DescFile[],
): JsonObject {
  // Beside what the rules say, zero is accepted, which no keyword says.
  if (ignore !== Ignore.UNSPECIFIED) return {};
  const expressions = [...cel.map(({ expression }) => expression), ...celExpression];
  if (type.case === undefined) return patternKeywords(expressions.flatMap(matchIn));
  const rules = reflect(descOf(type.value), type.value);
  const set = SHOWN_OTHERWISE.includes(type.case) ? [] : rules.fields.filter((f) => rules.isSet(f));
  const given = areCrossed(rules) ? set.filter(({ name }) => !LIMITS.includes(name)) : set;
  const own = given.map((field): JsonObject => {
    // Several numbers are one in 32 bits.
    if (type.case === "float" && (field.name === "const" || field.name === "in")) return {};
    const value = inJson(plain(rules.get(field)), type.case as string);
    return (value !== undefined && keywords[field.name]?.(value)) || {};
  });
  const patterns = [...expressions, ...predefinedRules(rules, rulesFiles)].flatMap(matchIn);
  const pattern = type.case === "string" && type.value.pattern !== "" ? [type.value.pattern] : [];
  const { minLength, ...others } = patternKeywords([...patterns, ...pattern]);
  const description = [...own, others].flatMap((keyword) => keyword.description ?? []).join(" ");
  // A lower limit of the rules goes before that of their patterns.
  return Object.assign(minLength === undefined ? {} : { minLength }, ...own, others, description && { description });
}

const LIMITS: readonly string[] = ["gt", "gte", "lt", "lte"];

/** Limits the wrong way round allow what is outside of them, which no keyword says. */
function areCrossed(rules: ReflectMessage): boolean {
  const limit = (...names: readonly string[]) => {
    const field = rules.fields.find((candidate) => names.includes(candidate.name) && rules.isSet(candidate));
    return field && (rules.get(field) as number | bigint);
  };
  const [above, below] = [limit("gt", "gte"), limit("lt", "lte")];
  return above !== undefined && below !== undefined && below < above;
}

/** Their rules are not about what JSON has in their place: names, a text with a date, base64. */
const SHOWN_OTHERWISE: readonly string[] = ["enum", "timestamp", "bytes"];

const ruleTypes = createRegistry(file_buf_validate_validate);

/** @throws Error for rules of a type that this version of buf.validate does not have */
function descOf({ $typeName }: Message): DescMessage {
  const desc = ruleTypes.getMessage($typeName);
  if (!desc) throw new Error(`${$typeName} is unknown`);
  return desc;
}

const plain = (value: unknown): unknown =>
  typeof value === "object" && value !== null && Symbol.iterator in value ? [...(value as Iterable<unknown>)] : value;

/** A rule's value as JSON has it; undefined of what it has no number for. Those of 32 bits as they are written, not as they are held. */
function inJson(value: unknown, type: string): unknown {
  if (Array.isArray(value)) {
    const all = value.map((one) => inJson(one, type));
    return all.includes(undefined) ? undefined : all;
  }
  if (typeof value !== "number") return value;
  if (/int|fixed/.test(type)) return BigInt(value);
  if (!Number.isFinite(value)) return undefined;
  if (type !== "float") return value;
  let shortest = value;
  for (let digits = 9; digits > 0; digits--) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) !== value) break;
    shortest = shorter;
  }
  return shortest;
}

/** The CEL expressions behind those extensions of a rules message that are set. */
function predefinedRules(rules: ReflectMessage, files: readonly DescFile[]): readonly string[] {
  const set = (extension: DescExtension) => rules.message.$unknown?.some(({ no }) => no === extension.number);
  return files
    .flatMap(({ extensions }) => extensions)
    .filter((extension) => extension.extendee.typeName === rules.desc.typeName && set(extension))
    .flatMap((extension) => getOption(extension, predefined).cel.map(({ expression }) => expression));
}

/** Of patterns of RE2. What JSON Schema has no pattern for is told in words. */
function patternKeywords(re2: readonly string[]): JsonObject {
  const patterns = re2.flatMap((one) => ecmaPattern(one) ?? []);
  const others = re2.filter((one) => ecmaPattern(one) === undefined);
  return {
    ...(others.length > 0 && { description: others.map((one) => `Matches \`${re2Text(one)}\` (RE2).`).join(" ") }),
    // Of an empty text it is a lower limit too, for readers that don't read patterns.
    ...(patterns.some((pattern) => !new RegExp(pattern, "u").test("")) && { minLength: 1 }),
    ...(patterns.length === 1 && { pattern: patterns[0] }),
    ...(patterns.length > 1 && { allOf: patterns.map((pattern) => ({ pattern })) }),
  };
}

// From patterns of RE2, as rules have them, to those of ECMA-262, as JSON Schema has them.

/** Behind a backslash. `\d`, `\w` and `\b` are of ASCII in both. */
const ESCAPED = String.raw`[dDwWtnrfv^$\\.*+?()[\]{}|/]|x[\dA-Fa-f]{2}|x\{[\dA-Fa-f]{1,4}\}`;
/** Without names of classes, such as `[:alpha:]`, and not empty: what would end it is an item in RE2. */
const BRACKETS = String.raw`\[(?!\^?\])\^?(?:\\(?:${ESCAPED}|-)|(?!\[:)[ -[^-~])+\]`;
/** What both write alike and mean alike, but for the codes of characters and for `.`. */
const TOKENS = new RegExp(
  String.raw`${BRACKETS}|\\(?:${ESCAPED}|[bB])|\{\d+(?:,\d*)?\}|\(\?:|\((?!\?)|(?![\\([\]{}])[ -~]`,
  "gy",
);

const coded = (sign: string) => `\\x{${(sign.codePointAt(0) as number).toString(16)}}`;

/** As it can be read wherever it is copied to. */
const written = (token: string): string =>
  token === "."
    ? "[^\\n]"
    : token.replaceAll(/\\(?:x\{([\dA-Fa-f]+)\}|.)/g, (same, hex?: string) => {
        const code = hex?.replace(/^0+(?=..)/, "").toUpperCase();
        return code === undefined
          ? same
          : code.length > 2
            ? `\\u${code.padStart(4, "0")}`
            : `\\x${code.padStart(2, "0")}`;
      });

/**
 * In code it would be wrong: a line break of Unicode ends a literal of JavaScript, and some generators of clients write even its
 * escape as the character.
 */
const UNSAFE = /\\u202[89]/;

/**
 * The same in ECMA-262; undefined for what the two write in different ways or RE2 alone knows, and for what can't be copied into
 * code. Characters beyond 16 bits can't: languages differ in their escapes, and without a flag such a character is two.
 */
export function ecmaPattern(re2: string): string | undefined {
  const printable = re2.replaceAll(/\\?([^ -~])|\\./gsu, (token, sign?: string) => (sign ? coded(sign) : token));
  const tokens = printable.match(TOKENS) ?? [];
  const text = tokens.map(written).join("");
  if (tokens.join("") !== printable || UNSAFE.test(text)) return undefined;
  try {
    new RegExp(text, "u");
    return text;
  } catch {
    return undefined;
  }
}

/** As it can stand in a comment of generated code: what would end the comment or its line, or isn't seen, by its number. */
export const re2Text = (re2: string): string =>
  re2.replaceAll(/\\?(.)/gsu, (token, sign: string, at: number) => {
    const isComment = sign === "/" && (re2[at - 1] === "*" || re2[at + token.length] === "*");
    return isComment || /[^ -~]/u.test(sign) ? coded(sign) : token;
  });
