import { createRegistry, type DescField, type DescFile, type DescMessage, type Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator, type Violation } from "@bufbuild/protovalidate";
import { filesBelow } from "../contract/files.ts";
import { curtail } from "./field-limits.ts";
import { maskOf, masksOut, maskViolations } from "./mask.ts";
import { rulesInUse, withOnly } from "./rules-in-use.ts";

/** A validator, and what it was made for. */
interface Known {
  readonly validator: Validator;
  /** They predefine rules. */
  readonly files: readonly DescFile[];
  /** The standard rules that it compiles. */
  readonly rules: ReadonlySet<DescField>;
  readonly compiled: WeakSet<DescMessage>;
}

/**
 * To make a validator and to compile rules is expensive: a file takes the first one that knows all its rules. Others that the
 * validator knows are on no field of the file.
 */
const validators: Known[] = [];
const validatorByFile = new WeakMap<DescFile, Known>();

/** A validator that knows the rules of a file and of those below it, also predefined ones (extensions of buf.validate). */
function validatorOf(file: DescFile): Known {
  let found = validatorByFile.get(file);
  if (!found) {
    const below = filesBelow([file]);
    const files = below.filter(hasRules);
    const rules = rulesInUse(below);
    found = validators.find(
      (known) => files.every((each) => known.files.includes(each)) && [...rules].every((rule) => known.rules.has(rule)),
    );
    if (!found) {
      const validator = createValidator({ registry: createRegistry(...files) });
      found = { validator, files, rules, compiled: new WeakSet() };
      validators.push(found);
    }
    validatorByFile.set(file, found);
  }
  return found;
}

function judge(schema: DescMessage, message: Message): ReturnType<Validator["validate"]> {
  const { validator, rules, compiled } = validatorOf(schema.file);
  if (compiled.has(schema)) return validator.validate(schema, message);
  compiled.add(schema);
  return withOnly(rules, () => validator.validate(schema, message));
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
  const result = judge(schema, curtail(schema, message));
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
