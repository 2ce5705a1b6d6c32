import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { getOption, isFieldSet } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence, type FieldMask, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { Violation } from "@bufbuild/protovalidate";
import { field as fieldOption } from "#proto/petstore/common/v1/http_pb.ts";

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
  const isMask = (f: DescField) => f.fieldKind === "message" && f.message.typeName === FieldMaskSchema.typeName;
  const maskField = schema.fields.find(isMask);
  if (!maskField || !isFieldSet(request, maskField)) return undefined;
  const resource = schema.fields.find((f) => f.fieldKind === "message" && !isMask(f));
  if (resource?.fieldKind !== "message") return undefined;
  const { paths } = (request as unknown as Record<string, FieldMask>)[maskField.localName] as FieldMask;
  return { maskField, paths, resource };
}

/** True for a violation in a field of the resource that the mask leaves alone. */
export function isMaskedOut({ resource, paths }: Masked, path: Path): boolean {
  const [outer, inner] = path;
  return outer === resource && inner?.kind === "field" && !paths.includes(inner.name);
}

/** What is wrong with the mask itself: a path that names no field, or one that would remove what can't be removed. */
export function maskViolations({ maskField, paths, resource }: Masked, request: Message): Violation[] {
  const value = (request as unknown as Record<string, Message>)[resource.localName];
  return paths.flatMap((path) => {
    const field = resource.message.fields.find((f) => f.name === path);
    if (!field || getOption(field, fieldOption).outputOnly) {
      const known = resource.message.fields.filter((f) => !getOption(f, fieldOption).outputOnly).map((f) => f.name);
      return [new Violation(`must name fields among ${known.join(", ")}`, "field_mask.in", [maskField], [], false)];
    }
    if (value && hasPresence(field) && !isFieldSet(value, field) && !getOption(field, fieldOption).clearable)
      return [new Violation("must have a value", "required", [resource, field], [], false)];
    return [];
  });
}
