/** How large requests can be by the contract: every field has a bound. */
import { type DescField, type DescMessage, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { LinkService } from "../../packages/rpc/gen/link/internal/v1/link_service_pb.ts";
import { limitOf } from "../../packages/transcoder/validation/validate.ts";
import { contractServices } from "./contract-services.ts";

/** What callers, or the petstore's own processes, can call; a link carries calls that are judged one by one. */
const methods = contractServices.flatMap((service): readonly DescMethod[] => service.methods);

/** Every field of a message and of those within it. */
function fieldsWithin(desc: DescMessage, seen = new Set<DescMessage>()): readonly DescField[] {
  if (seen.has(desc)) return [];
  seen.add(desc);
  return desc.fields.flatMap((field) => [field, ...(field.message ? fieldsWithin(field.message, seen) : [])]);
}

const isText = (type: ScalarType | undefined): boolean => type === ScalarType.STRING || type === ScalarType.BYTES;

/** Whether nothing bounds what a field can hold. A mask's paths are compared with the names of fields and go no further. */
function isUnbounded(field: DescField): boolean {
  const { size, items, keys } = limitOf(field);
  if (field.fieldKind === "list" || field.fieldKind === "map") {
    if (!Number.isFinite(size)) return true;
    if (field.fieldKind === "map" && isText(field.mapKey) && !Number.isFinite(keys?.size)) return true;
    return isText(field.scalar) && field.parent !== FieldMaskSchema && !Number.isFinite(items?.size);
  }
  return isText(field.scalar) && !Number.isFinite(size);
}

describe("the contract", () => {
  test.each(methods.map((method) => [`${method}`, method] as const))("bounds every field of %s", (_, method) => {
    expect(fieldsWithin(method.input).filter(isUnbounded).map(String)).toEqual([]);
  });

  test("what is not bounded is found", () => {
    const fields = fieldsWithin(LinkService.method.link.input).filter(isUnbounded).map(String);
    expect(fields).toContain("field link.internal.v1.LinkRequest.calls");
    expect(fields).toContain("field link.internal.v1.Call.message");
  });
});
