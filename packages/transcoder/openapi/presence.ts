/** What the contract says of a field: whether it has to be there, by rules and by annotations of google.api, and what no type tells. */
import { type DescField, type DescFile, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  field as fieldRules,
  Ignore,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { Codec } from "../contract/codec.ts";
import { isOutputOnly } from "../contract/fields.ts";
import { FieldBehavior, field_behavior } from "../gen/google/api/field_behavior_pb.ts";
import { resource_reference } from "../gen/google/api/resource_pb.ts";
import { isHidden } from "../response/encode.ts";
import type { JsonObject } from "./json.ts";
import { ruleKeywords } from "./rules.ts";
import { valueNames } from "./values.ts";

/**
 * Whether a field has to be there. Without presence zero and absent are one, so a rule against the one is against the other.
 * On output a field without presence is always there, but an enum that may say "unspecified".
 */
export function isRequired(field: DescField, isInput: boolean, rulesFiles: readonly DescFile[], codec: Codec): boolean {
  if (field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED) return true;
  if (!isInput) return !codec.omitUnpopulated && isAlwaysThere(field) && (!isHidden(field, codec) || isWanted(field));
  return (
    !isOutputOnly(field) &&
    (isWanted(field) ||
      behaviorsOf(field).includes(FieldBehavior.REQUIRED) ||
      (isAlwaysThere(field) && refuseZero(ownKeywords(field, rulesFiles, codec))))
  );
}

/** What the rules say of the value of a field as a whole; `rulesFiles` are where predefined ones are found. */
export const ownKeywords = (field: DescField, rulesFiles: readonly DescFile[], codec: Codec): JsonObject => ({
  ...notZero(field, codec),
  ...(isAlternative(field) ? {} : ruleKeywords(getOption(field, fieldRules), rulesFiles)),
});

function isWanted(field: DescField): boolean {
  const { required, ignore } = getOption(field, fieldRules);
  return required && ignore !== Ignore.ALWAYS;
}

const isAlwaysThere = ({ presence, oneof }: DescField): boolean =>
  presence === FeatureSet_FieldPresence.IMPLICIT && !oneof;

/** One that a oneof of the message's rules names may be zero, whatever its own rules say, and counts as absent then. */
const isAlternative = (field: DescField): boolean =>
  isAlwaysThere(field) && getOption(field.parent, messageRules).oneof.some(({ fields }) => fields.includes(field.name));

/** The rule `required`, where zero is as good as absent. */
function notZero(field: DescField, codec: Codec): JsonObject {
  if (!isWanted(field) || !isAlwaysThere(field)) return {};
  const { fieldKind, scalar } = field;
  if (fieldKind === "list") return { minItems: 1 };
  if (fieldKind === "map") return { minProperties: 1 };
  if (field.enum) {
    if (codec.enumNumbers) return { not: { const: 0 } };
    const zero = valueNames(field.enum, codec).flatMap(([name, number]) => (number === 0 ? [name] : []));
    return zero.length > 0 ? { not: { enum: zero } } : {};
  }
  if (scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return { minLength: 1 };
  if (scalar === ScalarType.BOOL) return { const: true };
  // -0 is another number there, and the same one in a schema.
  return scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT ? {} : { not: { const: 0 } };
}

function refuseZero({ const: one, enum: some, ...limits }: JsonObject): boolean {
  const has = (name: string, refuses: (limit: number) => boolean) => name in limits && refuses(Number(limits[name]));
  return (
    ["minLength", "minItems", "minProperties", "minimum"].some((name) => has(name, (limit) => limit > 0)) ||
    has("exclusiveMinimum", (limit) => limit >= 0) ||
    has("maximum", (limit) => limit < 0) ||
    has("exclusiveMaximum", (limit) => limit <= 0) ||
    (one !== undefined && !isZero(one)) ||
    (Array.isArray(some) && !some.some(isZero))
  );
}

const isZero = (value: unknown): boolean => value === "" || (typeof value !== "string" && Number(value) === 0);

/** Behaviors of AIP-203 that no keyword says. */
const WORDS: ReadonlyMap<FieldBehavior, string> = new Map([
  [FieldBehavior.IMMUTABLE, "Can't be changed once it is set."],
  [FieldBehavior.UNORDERED_LIST, "In no particular order."],
  [FieldBehavior.NON_EMPTY_DEFAULT, "Where it is not given, the service chooses a value."],
  [FieldBehavior.IDENTIFIER, "Identifies the resource."],
]);

const behaviorsOf = (field: DescField): readonly FieldBehavior[] => getOption(field, field_behavior);

/** Keywords for what annotations of google.api say (AIP-203, AIP-122), and what no keyword says as a description. */
export function behaviorKeywords(field: DescField): JsonObject {
  const behaviors = behaviorsOf(field);
  const description = [...behaviors.flatMap((one) => WORDS.get(one) ?? []), ...reference(field)].join(" ");
  return {
    ...(description !== "" && { description }),
    ...(behaviors.includes(FieldBehavior.OUTPUT_ONLY) && { readOnly: true }),
    ...(behaviors.includes(FieldBehavior.INPUT_ONLY) && { writeOnly: true }),
    ...(field.deprecated && { deprecated: true }),
  };
}

function reference(field: DescField): readonly string[] {
  if (!hasOption(field, resource_reference)) return [];
  const { type, childType } = getOption(field, resource_reference);
  if (type === "*") return ["The name of a resource of any type."];
  if (type !== "") return [`The name of a resource of the type \`${type}\`.`];
  return childType === "" ? [] : [`The name of the parent of resources of the type \`${childType}\`.`];
}
