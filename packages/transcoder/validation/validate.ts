import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { commonCheck, LEGACY_REQUIRED } from "./common-rules.ts";
import { curtail } from "./field-limits.ts";
import { maskOf, masksOut, maskViolations } from "./mask.ts";
import type { Violation } from "./violation.ts";

/** What judges any rule, once a contract needed it: its start takes longer than that of all the rest. */
let protovalidate: typeof import("./protovalidate.ts") | undefined;

/**
 * To be called before messages of these types are validated, and waited for where it has something to load. A rule that
 * makes no sense is found here.
 */
export function prepareValidation(schemas: readonly DescMessage[]): Promise<void> | undefined {
  const others = schemas.filter((schema) => !commonCheck(schema));
  if (others.length === 0) return undefined;
  return import("./protovalidate.ts").then((loaded) => {
    protovalidate = loaded;
    loaded.ensurePatterns(others);
    // Rules are compiled by the first message.
    for (const schema of others) validate(schema, create(schema));
  });
}

function judge(schema: DescMessage, message: Message): readonly Violation[] {
  const check = commonCheck(schema);
  if (check) return check(message);
  if (!protovalidate) throw new Error(`prepareValidation was not called for ${schema.typeName}, or not waited for.`);
  return protovalidate.judge(schema, message);
}

/**
 * Checks a message against the rules of its schema (buf.validate). An update mask is respected: rules on fields that it
 * does not name don't count. With `judgesMask` its own paths are checked, as names of the resource's fields, of which those that
 * can't be removed need a value. An empty result means that the message is valid.
 *
 * Sizes are judged first: of a value that is too large nothing else is looked at, so that the work and the number of
 * violations are bounded by the contract and not by what was sent.
 */
export function validate(schema: DescMessage, message: Message, judgesMask = true): Violation[] {
  const found = sizesFirst(judge(schema, curtail(schema, message)));
  const mask = maskOf(schema, message);
  if (!mask) return found;
  const isMaskedOut = masksOut(mask);
  // Without a field that proto2 requires there is no message at all.
  const counted = found.filter((violation) => violation.ruleId === LEGACY_REQUIRED || !isMaskedOut(violation));
  if (!judgesMask) return counted;
  const own = maskViolations(mask, message).filter(
    (violation) => !counted.some((other) => other.field.at(-1) === violation.field.at(-1)),
  );
  return [...counted, ...own];
}

const isSize = ({ ruleId }: Violation): boolean =>
  /\.(max_len|len|max_bytes|len_bytes|max_items|max_pairs)$/.test(ruleId);

/** Leaves out what else is wrong with values that are too large. */
function sizesFirst(violations: readonly Violation[]): Violation[] {
  const tooLarge = new Set(violations.filter(isSize).map(({ field }) => pathToString(field)));
  if (tooLarge.size === 0) return [...violations];
  const isWithin = (path: Violation["field"]) =>
    path.some((_, index) => tooLarge.has(pathToString(path.slice(0, index + 1))));
  return violations.filter((violation) => isSize(violation) || !isWithin(violation.field));
}
