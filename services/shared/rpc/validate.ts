import { createRegistry, type DescMessage, type Message } from "@bufbuild/protobuf";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { file_petstore_common_v1_rules } from "#proto/petstore/common/v1/rules_pb.ts";
import { isMaskedOut, maskOf, maskViolations } from "./mask.ts";

const validator = createValidator({ registry: createRegistry(file_petstore_common_v1_rules) });

/**
 * Checks a message against the rules of its schema (buf.validate). An update mask is respected: rules on fields that it
 * does not name don't count, and its own paths are checked. An empty result means that the message is valid.
 */
export function validate(schema: DescMessage, message: Message): Violation[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  const found = result.violations ?? [];
  const mask = maskOf(schema, message);
  if (!mask) return found;
  const counted = found.filter((violation) => !isMaskedOut(mask, violation.field));
  const own = maskViolations(mask, message).filter(
    (violation) => !counted.some((other) => other.field.at(-1) === violation.field.at(-1)),
  );
  return [...counted, ...own];
}
