/** Which RPCs can be served as a PATCH. */
import type { DescField } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { Body } from "./operation.ts";

// A FieldMask can't name parts of a nested value, so a merge patch that has to merge within one is not served.
export function patchMask(mask: DescField | undefined, body: Body | undefined): DescField {
  if (!mask) throw new Error("PATCH needs a google.protobuf.FieldMask update_mask in the request");
  if (body?.kind !== "field" || body.field.fieldKind !== "message")
    throw new Error("PATCH needs a message as its body");
  if (body.field.oneof) throw new Error(`${body.field.name} is in a oneof, which PATCH can't fill`);
  const nested = body.field.message.fields.find(
    (field) =>
      field.fieldKind === "map" ||
      (field.fieldKind === "message" && field.message.typeName !== TimestampSchema.typeName),
  );
  if (nested) throw new Error(`PATCH can't merge within ${nested.name}`);
  return mask;
}
