import { createRegistry, type DescMessage, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { file_petstore_common_v1_rules } from "../../../proto/gen/petstore/common/v1/rules_pb.ts";
import { curtail } from "./field-limits.ts";
import { maskOf, masksOut, maskViolations } from "./mask.ts";

const validator = createValidator({ registry: createRegistry(file_petstore_common_v1_rules) });

/**
 * Checks a message against the rules of its schema (buf.validate). An update mask is respected: rules on fields that it
 * does not name don't count, and its own paths are checked. An empty result means that the message is valid.
 *
 * Sizes are judged first: of a value that is too large nothing else is looked at, so that the work and the number of
 * violations are bounded by the contract and not by what was sent.
 */
export function validate(schema: DescMessage, message: Message): Violation[] {
  const result = validator.validate(schema, curtail(schema, message));
  if (result.kind === "error") throw result.error;
  const found = sizesFirst(result.violations ?? []);
  const mask = maskOf(schema, message);
  if (!mask) return found;
  const isMaskedOut = masksOut(mask);
  const counted = found.filter(({ field }) => !isMaskedOut(field));
  const own = maskViolations(mask, message).filter(
    (violation) => !counted.some((other) => other.field.at(-1) === violation.field.at(-1)),
  );
  return [...counted, ...own];
}

const isSize = ({ ruleId }: Violation): boolean =>
  /\.(max_len|len|max_bytes|len_bytes|max_items|max_pairs)$/.test(ruleId);

/** Leaves out what else is wrong with values that are too large. */
function sizesFirst(violations: readonly Violation[]): Violation[] {
  const tooLarge = violations.filter(isSize).map(({ field }) => pathToString(field));
  if (tooLarge.length === 0) return [...violations];
  const isWithin = (path: string) =>
    tooLarge.some((outer) => path === outer || path.startsWith(`${outer}.`) || path.startsWith(`${outer}[`));
  return violations.filter((violation) => isSize(violation) || !isWithin(pathToString(violation.field)));
}
