/** google.protobuf.FieldMask as text: paths by JSON names, separated by commas. */
import { create } from "@bufbuild/protobuf";
import { protoCamelCase, protoSnakeCase } from "@bufbuild/protobuf/reflect";
import { type FieldMask, FieldMaskSchema } from "@bufbuild/protobuf/wkt";

/**
 * Undefined when the text is no mask. Outside of JSON, as in `?updateMask=display_name`, many callers write the names of the
 * contract: with `takesOriginal` a path may be either.
 */
export function parseFieldMask(text: string, takesOriginal: boolean): FieldMask | undefined {
  if (text === "") return create(FieldMaskSchema);
  const paths = text.split(",");
  if (paths.includes("") || (!takesOriginal && text.includes("_"))) return undefined;
  return create(FieldMaskSchema, { paths: paths.map(protoSnakeCase) });
}

/** @throws RangeError for a path that would be another one when it is read again */
export function formatFieldMask({ paths }: FieldMask): string {
  const named = paths.map(protoCamelCase);
  const wrong = paths.find((path, i) => protoSnakeCase(named[i] as string) !== path);
  if (wrong !== undefined)
    throw new RangeError(`the path ${JSON.stringify(wrong)} of a FieldMask can't be written as JSON`);
  return named.join(",");
}
