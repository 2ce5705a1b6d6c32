/** Judges any rule, by protovalidate: loads CEL and compiles rules in it, which takes longer than all else of a start. */
import { createRegistry, type DescFile, type DescMessage, getOption, type Message } from "@bufbuild/protobuf";
import { createValidator, type Validator, type Violation } from "@bufbuild/protovalidate";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { RE2JS } from "@bufbuild/re2";
import { remembered } from "../contract/remembered.ts";
import { filesBelow } from "../descriptors.ts";

/**
 * To make a validator and to compile rules is expensive: a file takes the first one that knows all its rules. Others that the
 * validator knows are on no field of the file. `files` are those that it was made for, which predefine rules.
 */
const validators: { readonly validator: Validator; readonly files: readonly DescFile[] }[] = [];

/** A validator that knows the rules of a file and of those below it, also predefined ones (extensions of buf.validate). */
const validatorOf = remembered((file: DescFile): Validator => {
  const files = filesBelow([file]).filter(hasRules);
  const known = validators.find((one) => files.every((each) => one.files.includes(each)));
  if (known) return known.validator;
  const validator = createValidator({ registry: createRegistry(...files), legacyRequired: true });
  validators.push({ validator, files });
  return validator;
});

const hasRules = ({ extensions }: DescFile): boolean =>
  extensions.some(({ extendee }) => extendee.typeName.startsWith("buf.validate."));

/** Which rules a message breaks. @throws Error when a rule makes no sense */
export function judge(schema: DescMessage, message: Message): readonly Violation[] {
  const result = validatorOf(schema.file).validate(schema, message);
  if (result.kind === "error") throw result.error;
  return result.violations ?? [];
}

/** Of a pattern nothing is known before a value comes. @throws Error that names the field of one that is wrong */
export function ensurePatterns(schemas: readonly DescMessage[]): void {
  const reached = new Set(schemas);
  for (const { fields } of reached)
    for (const field of fields) {
      if (field.message) reached.add(field.message);
      try {
        compilePatterns(getOption(field, fieldRules));
      } catch (error) {
        throw new Error(`${field}: ${(error as Error).message}`, { cause: error });
      }
    }
}

function compilePatterns(rules: FieldRules | undefined): void {
  const type = rules?.type;
  if ((type?.case === "string" || type?.case === "bytes") && type.value.pattern) RE2JS.compile(type.value.pattern);
  if (type?.case === "repeated") compilePatterns(type.value.items);
  if (type?.case === "map") for (const each of [type.value.keys, type.value.values]) compilePatterns(each);
}
