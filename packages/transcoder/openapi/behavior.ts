/** What annotations of google.api say of a field (AIP-203, AIP-122). */
import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { FieldBehavior, field_behavior } from "../gen/google/api/field_behavior_pb.ts";
import { resource_reference } from "../gen/google/api/resource_pb.ts";
import type { JsonObject } from "./json.ts";

const WORDS: ReadonlyMap<FieldBehavior, string> = new Map([
  [FieldBehavior.IMMUTABLE, "Can't be changed once it is set."],
  [FieldBehavior.UNORDERED_LIST, "In no particular order."],
  [FieldBehavior.NON_EMPTY_DEFAULT, "Where it is not given, the service chooses a value."],
  [FieldBehavior.IDENTIFIER, "Identifies the resource."],
]);

const behaviorsOf = (field: DescField): readonly FieldBehavior[] => getOption(field, field_behavior);

/** Whether a caller has to send the field. */
export const isRequiredByBehavior = (field: DescField): boolean => behaviorsOf(field).includes(FieldBehavior.REQUIRED);

/** Keywords, and what no keyword says as a description. */
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
