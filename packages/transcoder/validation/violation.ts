/** A broken rule of a schema, and how an error carries it. */
import { create, type DescField, ScalarType } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { FieldDescriptorProto_Type as FieldType } from "@bufbuild/protobuf/wkt";
import {
  type FieldPath,
  type FieldPathElement,
  FieldPathElementSchema,
  FieldPathSchema,
  ViolationSchema,
  type Violations,
  ViolationsSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** As protovalidate has it, whose own would load CEL. */
export interface Violation {
  /** A sentence without its subject. */
  readonly message: string;
  /** Such as "string.max_len". */
  readonly ruleId: string;
  /** From the message that was judged to what is wrong. */
  readonly field: Path;
  /** From buf.validate.FieldRules to the rule; empty where no field carries it. */
  readonly rule: Path;
  /** Of an entry of a map, the key is wrong and not the value. */
  readonly forKey: boolean;
}

/** The message that tells them, for the details of an error. */
export const violationsToProto = (violations: readonly Violation[]): Violations =>
  create(ViolationsSchema, {
    violations: violations.map(({ field, rule, ruleId, message, forKey }) =>
      create(ViolationSchema, {
        ...(field.length > 0 && { field: pathToProto(field) }),
        ...(rule.length > 0 && { rule: pathToProto(rule) }),
        ...(message && { message }),
        ruleId,
        forKey,
      }),
    ),
  });

function pathToProto(path: Path): FieldPath {
  const elements: FieldPathElement[] = [];
  let field: DescField | undefined;
  for (const step of path) {
    const last = elements.at(-1);
    if (step.kind === "list_sub") {
      if (last) last.subscript = { case: "index", value: BigInt(step.index) };
    } else if (step.kind === "map_sub") {
      if (last && field?.fieldKind === "map") Object.assign(last, entryOf(field, step.key));
    } else {
      field = step.kind === "field" ? step : undefined;
      elements.push(create(FieldPathElementSchema, elementOf(step)));
    }
  }
  return create(FieldPathSchema, { elements });
}

function elementOf(step: Extract<Path[number], { name: string }>) {
  if (step.kind === "oneof") return { fieldName: step.name };
  const { number: fieldNumber, proto } = step;
  if (step.kind === "extension") return { fieldName: `[${step.typeName}]`, fieldNumber, fieldType: proto.type };
  const isGroup = step.fieldKind === "message" && step.delimitedEncoding;
  return { fieldName: step.name, fieldNumber, fieldType: isGroup ? FieldType.GROUP : proto.type };
}

const UNSIGNED = new Set([ScalarType.UINT32, ScalarType.UINT64, ScalarType.FIXED32, ScalarType.FIXED64]);

function entryOf(
  { mapKey, scalar, message }: DescField & { fieldKind: "map" },
  key: string | number | bigint | boolean,
) {
  const subscript =
    typeof key === "boolean"
      ? { case: "boolKey", value: key }
      : typeof key === "string"
        ? { case: "stringKey", value: key }
        : { case: UNSIGNED.has(mapKey) ? "uintKey" : "intKey", value: BigInt(key) };
  return { keyType: mapKey, valueType: scalar ?? (message ? FieldType.MESSAGE : FieldType.ENUM), subscript };
}
