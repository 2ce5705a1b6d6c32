/** The mask of an update (AIP-134): which broken rules it leaves aside, and what is wrong with it itself. */
import { type DescField, type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { isClearable, isOutputOnly, isUpdateMask } from "../contract/fields.ts";
import { remembered } from "../contract/remembered.ts";
import type { Violation } from "./violation.ts";

/** Most paths of a google.protobuf.FieldMask, whose own fields can't carry rules. */
export const MAX_PATHS = 100;

interface MaskFields {
  readonly maskField: DescField;
  readonly resource: DescField & { readonly fieldKind: "message" };
}

/** The fields of a request with the mask of an update, and with the resource that it speaks of. */
export const maskedIn = remembered(({ fields }: DescMessage): MaskFields | undefined => {
  const maskField = fields.find(isUpdateMask);
  const resource = fields.find((f) => f.fieldKind === "message" && !f.message.typeName.startsWith("google.protobuf."));
  return maskField && resource?.fieldKind === "message" ? { maskField, resource } : undefined;
});

type Masked = MaskFields & { readonly paths: readonly string[] };

/**
 * Whether a violation is in a field of the resource that the mask leaves alone, or in a oneof of such fields. Or of a rule
 * for the resource as a whole, where the mask does not name all of it: whoever holds the record knows the rest.
 */
export function masksOut({ resource, paths }: Masked): (violation: Violation) => boolean {
  const named = new Set(paths);
  // All fields (AIP-134).
  if (named.has("*")) return () => false;
  const isPartial = [...settableFields(resource.message).keys()].some((name) => !named.has(name));
  return ({ field: [outer, ...inner], ruleId }) => {
    if (outer !== resource) return false;
    if (inner.length === 0) return isPartial && ruleId !== "required";
    return !isNamed(inner, named);
  };
}

/** Whether a mask names a field on the way to what breaks a rule, or one of the oneof that does. */
function isNamed(way: Violation["field"], named: ReadonlySet<string>): boolean {
  let prefix = "";
  for (const step of way) {
    if (step.kind === "oneof") return step.fields.some(({ name }) => named.has(prefix + name));
    if (step.kind !== "field") return step.kind === "extension";
    if (named.has(prefix + step.name)) return true;
    prefix += `${step.name}.`;
  }
  return false;
}

/** What a mask may name. */
const settableFields = remembered(
  ({ fields }: DescMessage) =>
    new Map(fields.filter((field) => !isOutputOnly(field)).map((field) => [field.name, field])),
);

/**
 * What is wrong with the mask itself: too many paths, one that names no field, or one that would remove what can't be
 * removed. Paths that are wrong in the same way are reported once.
 */
export function maskViolations({ maskField, paths, resource }: Masked, request: Message): Violation[] {
  const wrong = (message: string, ruleId: string, ...field: DescField[]): Violation => ({
    message,
    ruleId,
    field,
    rule: [],
    forKey: false,
  });
  if (paths.length > MAX_PATHS)
    return [wrong(`must contain no more than ${MAX_PATHS} paths`, "field_mask.max_paths", maskField)];
  const fields = settableFields(resource.message);
  const named = [...new Set(paths)];
  const value = (request as unknown as Record<string, Message>)[resource.localName];
  // Of a field without presence, zero is a value.
  const isMissing = (field: DescField) =>
    value && field.presence !== FeatureSet_FieldPresence.IMPLICIT && !isFieldSet(value, field) && !isClearable(field);
  const missing = named.map((path) => fields.get(path)).filter((field) => field && isMissing(field));
  return [
    ...(named.every((path) => fields.has(path))
      ? []
      : [wrong(`must name fields among ${[...fields.keys()].join(", ")}`, "field_mask.in", maskField)]),
    ...missing.map((field) => wrong("must have a value", "required", resource, field as DescField)),
  ];
}
