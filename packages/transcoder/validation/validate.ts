import { createRegistry, type DescFile, type DescMessage, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator, type Violation } from "@bufbuild/protovalidate";
import { filesBelow } from "../contract/files.ts";
import { curtail } from "./field-limits.ts";
import { maskOf, masksOut, maskViolations } from "./mask.ts";

/**
 * To make a validator and to compile rules is expensive: a file takes the first one that knows all its predefined rules.
 * Others that the validator knows are on no field of the file.
 */
const validators: { readonly files: readonly DescFile[]; readonly validator: Validator }[] = [];
const validatorByFile = new WeakMap<DescFile, Validator>();

/** A validator that knows the predefined rules (extensions of buf.validate) of a file and of those below it. */
function validatorOf(file: DescFile): Validator {
  let validator = validatorByFile.get(file);
  if (!validator) {
    const files = filesBelow([file]).filter(hasRules);
    validator = validators.find((known) => files.every((each) => known.files.includes(each)))?.validator;
    if (!validator) {
      validator = createValidator({ registry: createRegistry(...files) });
      validators.push({ files, validator });
    }
    validatorByFile.set(file, validator);
  }
  return validator;
}

const hasRules = ({ extensions }: DescFile): boolean =>
  extensions.some(({ extendee }) => extendee.typeName.startsWith("buf.validate."));

/**
 * Checks a message against the rules of its schema (buf.validate). An update mask is respected: rules on fields that it
 * does not name don't count, and its own paths are checked. An empty result means that the message is valid.
 *
 * Sizes are judged first: of a value that is too large nothing else is looked at, so that the work and the number of
 * violations are bounded by the contract and not by what was sent.
 */
export function validate(schema: DescMessage, message: Message): Violation[] {
  const result = validatorOf(schema.file).validate(schema, curtail(schema, message));
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
