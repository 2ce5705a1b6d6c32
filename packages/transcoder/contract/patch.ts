/** What a PATCH changes: one message of the request, the resource, by a merge patch (AIP-134). */
import type { DescField } from "@bufbuild/protobuf";
import { isHttpBody } from "./kinds.ts";
import type { Body } from "./operation.ts";

/** A field that holds a message whose members a merge patch names one by one. */
type Merged = DescField & { readonly fieldKind: "message" };

/** Whether a merge patch merges within the field. Lists, maps and the well-known types are replaced as wholes. */
export const isMerged = (field: DescField): field is Merged =>
  field.fieldKind === "message" && !field.message.typeName.startsWith("google.protobuf.") && !isHttpBody(field.message);

/** The field with the resource: that of the body; where the body is the whole request, its only field that can be one. */
export function patchedField(body: Body | undefined): Merged | undefined {
  if (body?.kind === "field") return isMerged(body.field) ? body.field : undefined;
  const candidates = body?.fields.filter(isMerged) ?? [];
  return candidates.length === 1 ? candidates[0] : undefined;
}

/**
 * Whether an operation changes its body's resource, so that an update mask is about it and has a meaning of its own: a PUT without
 * one changes all of the resource, a PATCH what the merge patch names.
 */
export const isUpdate = (verb: string, body: Body | undefined): boolean =>
  (verb === "PATCH" && patchedField(body) !== undefined) ||
  (verb === "PUT" && body?.kind === "field" && isMerged(body.field));
