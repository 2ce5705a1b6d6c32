/** What a field says about its life over HTTP, by its annotations or by its name and type. */
import { type DescField, getOption } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { field as fieldOption } from "../gen/transcoder/v1/annotations_pb.ts";
import type { HeaderField } from "./operation.ts";

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

/** Names of header fields that mean something here, however a contract spells them. */
const STANDARD = new Map(
  ["ETag", "If-Match", "If-None-Match", "Idempotency-Key"].map((name) => [name.toLowerCase(), name]),
);

/** A name of RFC 9110 (5.1), of no header that says how the message itself is to be read. */
const IS_OWN =
  /^(?!(?:connection|content-(?:encoding|length|type)|keep-alive|trailer|transfer-encoding|upgrade)$)[\w!#$%&'*+.^`|~-]+$/i;

/** @throws Error when a field can't be a header */
export const headersIn = (fields: readonly DescField[]): HeaderField[] =>
  fields.flatMap((field) => {
    const name = headerOf(field);
    if (name === "") return [];
    if (field.fieldKind !== "scalar" || field.oneof) throw new Error(`${field.name} can't be a header`);
    if (!IS_OWN.test(name)) throw new Error(`${field.name} can't be the header "${name}"`);
    return [{ name: STANDARD.get(name.toLowerCase()) ?? name, field }];
  });
