/** What the document says of fields that have to be there, held against what is taken. */
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { EXACT } from "../contract/codec.ts";
import type { Operation } from "../contract/operation.ts";
import { operationsOf } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { inputReader } from "../request/input.ts";
import { prepareValidation } from "../validation/validate.ts";
import { openApiDocument } from "./document.ts";
import { jsonText } from "./json.ts";

const FIELDS: Readonly<Record<string, [field: string, taken: string[], refused: string[]]>> = {
  text: ["string text = 1 [(buf.validate.field).required = true]", ['"a"'], ['""']],
  lines: [
    "string lines = 1 [(buf.validate.field).required = true, (buf.validate.field).string.min_len = 0]",
    ['"a"'],
    ['""'],
  ],
  bytes: ["bytes bytes = 1 [(buf.validate.field).required = true]", ['"AA=="'], ['""']],
  number: ["int64 number = 1 [(buf.validate.field).required = true]", ["1", "-1"], ["0", "0.0"]],
  double: ["double double = 1 [(buf.validate.field).required = true]", ["0.5", "-0", '"NaN"'], []],
  flag: ["bool flag = 1 [(buf.validate.field).required = true]", ["true"], ["false"]],
  genre: ["Genre genre = 1 [(buf.validate.field).required = true]", ['"novel"'], ['"unspecified"']],
  side: ["Side side = 1 [(buf.validate.field).required = true]", ['"right"'], ['"left"']],
  list: ["repeated string list = 1 [(buf.validate.field).required = true]", ['[""]'], ["[]"]],
  map: ["map<string, string> map = 1 [(buf.validate.field).required = true]", ['{"":""}'], ["{}"]],
  least: ["string least = 1 [(buf.validate.field).string.min_len = 2]", ['"ab"'], ['""', '"a"']],
  like: ["string like = 1 [(buf.validate.field).string.pattern = '^a+$']", ['"a"'], ['""', '"b"']],
  above: ["int64 above = 1 [(buf.validate.field).int64.gt = 0]", ["1"], ["0"]],
  below: ["double below = 1 [(buf.validate.field).double.lt = 0]", ["-1"], ["0"]],
  only: ["string only = 1 [(buf.validate.field).string = {in: ['a', '0']}]", ['"0"'], ['""']],
  one: ["uint32 one = 1 [(buf.validate.field).uint32.const = 1]", ["1"], ["0"]],
  some: ["repeated string some = 1 [(buf.validate.field).repeated.min_items = 1]", ['[""]'], ["[]"]],
  shown: ["optional string shown = 1 [(buf.validate.field).required = true]", ['""'], []],
  held: ["Text held = 1 [(buf.validate.field).required = true]", ["{}"], []],
  choice: ["oneof it { string choice = 1 [(buf.validate.field).required = true]; }", ['""'], []],
};
const ALSO_ABSENT: typeof FIELDS = {
  most: ["string most = 1 [(buf.validate.field).string.max_len = 1]", ['""'], ['"ab"']],
  down: ["int64 down = 1 [(buf.validate.field).int64 = {gte: 0 lte: 5}]", ["0"], ["-1"]],
  zero: ["int64 zero = 1 [(buf.validate.field).int64 = {in: [0, 7]}]", ["0"], ["1"]],
  flags: ["bool flags = 1 [(buf.validate.field).bool.const = false]", ["false"], ["true"]],
  maybe: ["optional string maybe = 1 [(buf.validate.field).string.min_len = 2]", ['"ab"'], ['""']],
  ignored: [
    "string ignored = 1 [(buf.validate.field).required = true, (buf.validate.field).ignore = IGNORE_ALWAYS]",
    ['""'],
    [],
  ],
  own: ["string own = 1 [(buf.validate.field).required = true, (transcoder.v1.field).output_only = true]", ['"a"'], []],
  either: [
    'option (buf.validate.message).oneof = {fields: ["either"]}; string either = 1 [(buf.validate.field).string.min_len = 3]',
    ['""', '"abc"'],
    [],
  ],
};
const all = { ...FIELDS, ...ALSO_ABSENT };

const service = serviceOf(
  compileProtos({
    "held.proto": `syntax = "proto3";
      package held.v1;
      import "buf/validate/validate.proto";
      import "google/api/annotations.proto";
      import "transcoder/v1/annotations.proto";
      enum Genre { GENRE_UNSPECIFIED = 0; GENRE_NOVEL = 1; }
      enum Side { SIDE_LEFT = 0; SIDE_RIGHT = 1; }
      message Text { string text = 1; }
      message Nothing {}
      ${Object.entries(all)
        .map(([name, [field]]) => `message ${name.toUpperCase()} { ${field.replace(/[^}]$/, "$&;")} }`)
        .join("\n")}
      service Held {
        ${Object.keys(all)
          .map(
            (name) => `rpc ${name}(${name.toUpperCase()}) returns (Nothing) {
              option (google.api.http) = {post: "/${name}" body: "*"};
            }`,
          )
          .join("\n")}
      }`,
  }),
  "held.v1.Held",
);
const operations = operationsOf(service);
await prepareValidation(operations.map(({ method }) => method.input));
const document = JSON.parse(
  jsonText(
    openApiDocument(
      { operations, docs: {}, files: filesBelow([service.file]), deprecation: {} },
      { title: "Held", version: "1", basePath: "", requestMs: 1, codec: "exact" },
    ),
  ),
);
const ajv = new Ajv2020({ strict: false, validateSchema: false, validateFormats: false });
ajv.addSchema({ ...document, $id: "https://document.invalid/" });

/** Whether the schema takes it, and whether the server does. */
function judged(name: string, body: string): [schema: boolean, server: boolean] {
  const $ref = `https://document.invalid/#/paths/~1${name}/post/requestBody/content/application~1json/schema`;
  const read = inputReader(operations.find(({ id }) => id === name) as Operation, {
    basePath: "",
    maxDepth: 16,
    codec: EXACT,
  });
  try {
    read({ target: `/${name}`, headers: {}, body: new TextEncoder().encode(body), strict: true });
    return [ajv.validate({ $ref }, JSON.parse(body)), true];
  } catch {
    return [ajv.validate({ $ref }, JSON.parse(body)), false];
  }
}

test.each(Object.entries(all))("%s: the schema takes what is taken, and nothing else", (name, [, taken, refused]) => {
  for (const value of taken) expect(judged(name, `{"${name}":${value}}`), value).toEqual([true, true]);
  for (const value of refused) expect(judged(name, `{"${name}":${value}}`), value).toEqual([false, false]);
  const isOptional = name in ALSO_ABSENT;
  expect(judged(name, "{}"), "absent").toEqual([isOptional, isOptional]);
});
