import { create, type DescMessage, hasOption } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import {
  Int64RulesSchema,
  predefined,
  StringRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test, vi } from "vitest";
import { compileProtos } from "../testdata/compile.ts";
import { validate } from "./validate.ts";

vi.mock("@bufbuild/protovalidate", async (load) => {
  const actual = await load<typeof import("@bufbuild/protovalidate")>();
  return { ...actual, createValidator: vi.fn(actual.createValidator) };
});

/** A message with a predefined rule of its project, whose extension has the same number in every project. */
function messageWithRule(suffix: string): DescMessage {
  const registry = compileProtos({
    "rules.proto": `edition = "2023"; package acme; import "buf/validate/validate.proto";
      extend buf.validate.StringRules {
        bool polite = 80001 [(buf.validate.predefined).cel = {
          id: "string.polite" message: "must end with ${suffix}" expression: "this.endsWith('${suffix}')"
        }];
      }`,
    "letter.proto": `syntax = "proto3"; package acme; import "buf/validate/validate.proto"; import "rules.proto";
      message Letter {
        string text = 1 [(buf.validate.field).string.(acme.polite) = true];
        string sender = 2 [(buf.validate.field).string.max_len = 9];
      }`,
  });
  return registry.getMessage("acme.Letter") as DescMessage;
}

test("rules that a project predefines are found in its own files, and are no other project's", () => {
  const problems = (desc: DescMessage, text: string) =>
    validate(desc, create(desc, { text } as never)).map(({ message }) => message);
  const [please, thanks] = [messageWithRule("please"), messageWithRule("thanks")];
  expect(problems(please, "a book, please")).toEqual([]);
  expect(problems(please, "a book, thanks")).toEqual(["must end with please"]);
  expect(problems(thanks, "a book, thanks")).toEqual([]);
  expect(problems(thanks, "a book, please")).toEqual(["must end with thanks"]);
});

test("rules are compiled once for all files whose rules are known", () => {
  const plain = compileProtos({
    "note.proto": `syntax = "proto3"; package acme; import "buf/validate/validate.proto";
      message Note { string text = 1 [(buf.validate.field).string.max_len = 3]; }`,
  }).getMessage("acme.Note") as DescMessage;
  const polite = messageWithRule("please");
  validate(polite, create(polite));
  vi.mocked(createValidator).mockClear();
  expect(validate(plain, create(plain, { text: "long" } as never))).toHaveLength(1);
  expect(createValidator).not.toHaveBeenCalled();
});

test("only rules that a field has are compiled, and a rule that comes later is judged all the same", () => {
  const { maxLen, email } = StringRulesSchema.field;
  const { gt, lt } = Int64RulesSchema.field;
  const all = [maxLen, email, gt, lt];
  const seen = new Set<readonly string[]>();
  vi.mocked(createValidator).mockImplementationOnce((options) => {
    const actual = createValidator(options);
    return {
      validate(...asked) {
        seen.add(all.filter((rule) => hasOption(rule, predefined)).map(({ name }) => name));
        return actual.validate(...asked);
      },
    };
  });
  const registry = compileProtos({
    "few.proto": `edition = "2023"; package few; import "buf/validate/validate.proto";
      message Inner { repeated string texts = 1 [(buf.validate.field).repeated.items.string.max_len = 3]; }
      message Outer { message Deep { int64 number = 1 [(buf.validate.field).int64 = {gt: 3, lt: 9}]; }
        Inner inner = 1; map<string, int64> numbers = 2 [(buf.validate.field).map.values.int64.const = 7];
        Deep deep = 3; string set = 4 [(buf.validate.field).string = {in: ["a"], not_in: ["b"]}]; }`,
    "more.proto": `edition = "2023"; package few; import "buf/validate/validate.proto";
      message More { string email = 1 [(buf.validate.field).string.email = true]; }`,
  });
  const outer = registry.getMessage("few.Outer") as DescMessage;
  const broken = (desc: DescMessage, value: Record<string, unknown>) =>
    validate(desc, create(desc, value)).map(({ ruleId }) => ruleId);
  expect(
    broken(outer, { inner: { texts: ["long"] }, deep: { number: 12n }, numbers: { x: 8n }, set: "b" }).sort(),
  ).toEqual(["int64.const", "int64.gt_lt", "string.in", "string.max_len", "string.not_in"]);
  expect([...seen]).toEqual([["max_len", "gt", "lt"]]);
  expect(broken(registry.getMessage("few.More") as DescMessage, { email: "nobody" })).toEqual(["string.email"]);
  expect(all.filter((rule) => hasOption(rule, predefined))).toEqual(all);
});
