/** What a field says about its life over HTTP, by its annotations or by its name and type. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { field as fieldOption } from "../gen/transcoder/v1/annotations_pb.ts";

/** The header that the field travels as; empty when it is a member or parameter. */
export const headerOf = (field: DescField): string => getOption(field, fieldOption).header;

/** Set by the service: on input neither validated nor used. */
export const isOutputOnly = (field: DescField): boolean => getOption(field, fieldOption).outputOnly;

/** Null in a merge patch removes the value. */
export const isClearable = (field: DescField): boolean => getOption(field, fieldOption).clearable;

/** In a query, a number beyond the range is read as the nearest one within it. */
export const isClamped = (field: DescField): boolean => getOption(field, fieldOption).clamped;

/**
 * Fields by the names that callers may give them: the JSON name and, as in proto3 JSON, the name in the contract. A name
 * that is both means the field whose JSON name it is.
 */
export const byName = (fields: readonly DescField[], jsonNamesOnly = false): ReadonlyMap<string, DescField> =>
  new Map([
    ...(jsonNamesOnly ? [] : fields.map((field) => [field.name, field] as const)),
    ...fields.map((field) => [field.jsonName, field] as const),
  ]);

/** Says which members of a resource an update changes (AIP-134). Other masks, as those of reads, are not about a resource. */
export const isUpdateMask = ({ name, fieldKind, message }: DescField): boolean =>
  name === "update_mask" && fieldKind === "message" && message.typeName === FieldMaskSchema.typeName;
