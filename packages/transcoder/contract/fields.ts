/** What the annotations of a field say about its life over HTTP. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { field as fieldOption } from "../gen/transcoder/v1/annotations_pb.ts";

/** The header that the field travels as; empty when it is a member or parameter. */
export const headerOf = (field: DescField): string => getOption(field, fieldOption).header;

/** Set by the service: on input neither validated nor used. */
export const isOutputOnly = (field: DescField): boolean => getOption(field, fieldOption).outputOnly;

/** Null in a merge patch removes the value. */
export const isClearable = (field: DescField): boolean => getOption(field, fieldOption).clearable;

/** In a query, a number beyond the range is read as the nearest one within it. */
export const isClamped = (field: DescField): boolean => getOption(field, fieldOption).clamped;
