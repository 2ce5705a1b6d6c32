/** Which of the standard rules (buf.validate) the fields of some files have. */
import {
  type DescField,
  type DescFile,
  type DescMessage,
  getOption,
  isFieldSet,
  type Message,
} from "@bufbuild/protobuf";
import {
  FieldRulesSchema,
  field as fieldRules,
  file_buf_validate_validate,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** Each standard rule is a field of one of these. */
const kindsOfRules = new Map(file_buf_validate_validate.messages.map((desc) => [desc.typeName, desc]));

/** The rules that any field of the files has. */
export function rulesInUse(files: readonly DescFile[]): ReadonlySet<DescField> {
  const found = new Set<DescField>();
  const collect = (desc: DescMessage, rules: Message) => {
    for (const rule of desc.fields.filter((rule) => isFieldSet(rules, rule))) {
      found.add(rule);
      if (rule.fieldKind !== "message" || !kindsOfRules.has(rule.message.typeName)) continue;
      const members = rules as unknown as Record<string, Message & { value: Message }>;
      const inner = rule.oneof ? members[rule.oneof.localName]?.value : members[rule.localName];
      if (inner) collect(rule.message, inner);
    }
  };
  const visit = ({ fields, nestedMessages }: DescMessage): void => {
    for (const field of fields) collect(FieldRulesSchema, getOption(field, fieldRules));
    nestedMessages.forEach(visit);
  };
  for (const { messages } of files) messages.forEach(visit);
  return found;
}

/**
 * Runs a step that compiles rules, and meanwhile takes their expressions from all rules but these. protovalidate compiles
 * every rule of a type as soon as a field has one of them: 109 expressions in CEL for the orders, which need 24.
 */
export function withOnly<R>(rules: ReadonlySet<DescField>, step: () => R): R {
  const others = [...kindsOfRules.values()].flatMap(({ fields }) => fields).filter((field) => !rules.has(field));
  const options = others.map(({ proto }) => proto.options);
  for (const { proto } of others) proto.options = undefined;
  try {
    return step();
  } finally {
    for (const [i, { proto }] of others.entries()) proto.options = options[i];
  }
}
