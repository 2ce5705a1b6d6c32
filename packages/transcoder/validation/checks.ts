/** Checks of values, and what rules of buf.validate are set. */
import { isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { Violation } from "./violation.ts";

/** What is wrong with a value, told by the way from there. */
export type Check<T> = (value: T) => readonly Violation[];
/** Undefined where a rule has no check. */
export type Checks<T> = readonly Check<T>[] | undefined;

export const NONE: readonly Violation[] = [];

/** The check of one rule. `rule` leads to it from buf.validate.FieldRules. */
export function unless<T>(holds: (value: T) => boolean, message: string, ruleId: string, rule: Path): Check<T> {
  const broken = [{ message, ruleId, rule, field: [], forKey: false }];
  return (value) => (holds(value) ? NONE : broken);
}

export const joined = <T>(parts: readonly Checks<T>[]): Checks<T> =>
  parts.every((part) => part !== undefined) ? parts.flat() : undefined;

export const all =
  <T>(checks: readonly Check<T>[]): Check<T> =>
  (value) => {
    let found = NONE;
    for (const check of checks) {
      const more = check(value);
      if (more.length > 0) found = [...found, ...more];
    }
    return found;
  };

export const below = (step: Path[number], found: readonly Violation[]): readonly Violation[] =>
  found.length === 0 ? NONE : found.map((violation) => ({ ...violation, field: [step, ...violation.field] }));

const kindsOfRules = new Map(file_buf_validate_validate.messages.map((desc) => [desc.typeName, desc]));

/** The standard rules that are set. */
export const rulesIn = (rules: Message) =>
  (kindsOfRules.get(rules.$typeName)?.fields ?? []).filter((rule) => isFieldSet(rules, rule));

/** Whether no other rules are set than these; those that a project predefines are unknown fields. */
export const hasOnly = (rules: Message, names: readonly string[]): boolean =>
  !rules.$unknown?.length && rulesIn(rules).every(({ localName }) => names.includes(localName));
