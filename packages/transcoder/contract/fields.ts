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

/** Says which members of a resource an update changes (AIP-134). Other masks, as those of reads, are not about a resource. */
export const isUpdateMask = ({ name, fieldKind, message }: DescField): boolean =>
  name === "update_mask" && fieldKind === "message" && message.typeName === FieldMaskSchema.typeName;
