import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { getOption, isFieldSet } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, type FieldMask } from "@bufbuild/protobuf/wkt";
import { isUpdateMask } from "../contract/fields.ts";
import { field as fieldOption } from "../gen/transcoder/v1/annotations_pb.ts";
import { MAX_PATHS } from "./field-limits.ts";
import type { Violation } from "./violation.ts";

/** The mask of an update (AIP-134) and the resource it speaks of. */
interface Masked {
  readonly maskField: DescField;
  readonly paths: readonly string[];
  /** The request's field that holds the resource. */
  readonly resource: DescField & { fieldKind: "message" };
}

/** True where absent differs from empty or zero. */
const hasPresence = ({ presence }: DescField): boolean => presence !== FeatureSet_FieldPresence.IMPLICIT;

/** The update mask that a request carries; undefined when it has none, which means "all fields". */
export function maskOf(schema: DescMessage, request: Message): Masked | undefined {
  const maskField = schema.fields.find(isUpdateMask);
  if (!maskField || !isFieldSet(request, maskField)) return undefined;
  const resource = schema.fields.find(
    (f) => f.fieldKind === "message" && !f.message.typeName.startsWith("google.protobuf."),
  );
  if (resource?.fieldKind !== "message") return undefined;
  const { paths } = (request as unknown as Record<string, FieldMask>)[maskField.localName] as FieldMask;
  return { maskField, paths, resource };
}

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

const settable = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** What a mask may name. Options are read once: to decode them takes longer than the rest of the check. */
function settableFields(desc: DescMessage): ReadonlyMap<string, DescField> {
  let fields = settable.get(desc);
  if (!fields) {
    fields = new Map(desc.fields.filter((f) => !getOption(f, fieldOption).outputOnly).map((f) => [f.name, f]));
    settable.set(desc, fields);
  }
  return fields;
}

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
  const isMissing = (field: DescField) =>
    value && hasPresence(field) && !isFieldSet(value, field) && !getOption(field, fieldOption).clearable;
  const missing = named.map((path) => fields.get(path)).filter((field) => field && isMissing(field));
  return [
    ...(named.every((path) => fields.has(path))
      ? []
      : [wrong(`must name fields among ${[...fields.keys()].join(", ")}`, "field_mask.in", maskField)]),
    ...missing.map((field) => wrong("must have a value", "required", resource, field as DescField)),
  ];
}
