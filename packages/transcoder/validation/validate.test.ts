import { create, type DescMessage } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { compileProtos } from "../testdata/compile.ts";
import { validate } from "./validate.ts";

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
      message Letter { string text = 1 [(buf.validate.field).string.(acme.polite) = true]; }`,
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
