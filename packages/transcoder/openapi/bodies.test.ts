/** Bodies and answers that are not one message. */
import { expect, test } from "vitest";
import { operationsOf } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { openApiDocument } from "./document.ts";

const answer = (field: string) =>
  `rpc Get_${field}(Nothing) returns (Cup) { option (google.api.http) = {get: "/${field}" response_body: "${field}"}; }`;
const FIELDS = ["by_name", "list", "text", "always", "at", "state", "side", "item"];

const service = serviceOf(
  compileProtos({
    "cups.proto": `syntax = "proto3";
      package cups.v1;
      import "buf/validate/validate.proto";
      import "google/api/annotations.proto";
      import "google/protobuf/field_mask.proto";
      import "google/protobuf/timestamp.proto";
      import "transcoder/v1/annotations.proto";
      message Nothing {}
      message Item { string name = 1; }
      enum State { STATE_UNSPECIFIED = 0; STATE_FULL = 1; }
      enum Side { SIDE_LEFT = 0; SIDE_RIGHT = 1; }
      message Cup {
        map<string, Item> by_name = 1;
        repeated Item list = 2;
        optional string text = 3;
        string always = 4;
        google.protobuf.Timestamp at = 5;
        State state = 6;
        Side side = 7;
        Item item = 8;
      }
      message Put { Item item = 1; }
      message Fill { int64 id = 1; Item item = 2; string with_tea = 3; }
      message Items { repeated Item items = 1; }
      message Named { map<string, Item> named = 1; }
      message Rules {
        float in = 1 [(buf.validate.field).float = {in: [0.1, 0.5]}];
        float gte = 2 [(buf.validate.field).float.gte = 0.1];
        float lt = 3 [(buf.validate.field).float.lt = 16777216];
        double lte = 4 [(buf.validate.field).double.lte = inf];
        double const = 5 [(buf.validate.field).double.const = nan];
        optional string fixed = 6 [(buf.validate.field).string.const = "x", (transcoder.v1.field).clearable = true];
      }
      message Change { Rules rules = 1; google.protobuf.FieldMask update_mask = 2; }
      service Cups {
        ${FIELDS.map(answer).join("\n")}
        rpc PutItems(Items) returns (Nothing) { option (google.api.http) = {put: "/items" body: "items"}; }
        rpc PutNamed(Named) returns (Nothing) { option (google.api.http) = {put: "/named" body: "named"}; }
        rpc SetRules(Change) returns (Nothing) { option (google.api.http) = {patch: "/rules" body: "rules"}; }
        rpc AlterRules(Change) returns (Nothing) {
          option (google.api.http) = {patch: "/some-rules" body: "rules"};
          option (transcoder.v1.operation).accepts_empty_mask = true;
        }
        rpc AddItem(Put) returns (Nothing) { option (google.api.http) = {post: "/item" body: "item"}; }
        rpc NewItem(Fill) returns (Nothing) { option (google.api.http) = {post: "/filled" body: "item"}; }
        rpc FillCup(Fill) returns (Nothing) { option (google.api.http) = {post: "/fill/{id}" body: "*"}; }
      }`,
  }),
  "cups.v1.Cups",
);
interface Content {
  content: Record<string, { schema: object; example?: unknown }>;
}
const { paths, components } = openApiDocument(
  {
    operations: operationsOf(service),
    docs: {},
    files: filesBelow([service.file]),
    examples: {
      "cups.v1.Item": [{ name: "spoon" }, { name: "saucer" }],
      "cups.v1.Fill": [{ id: 7, item: { name: "biscuit" }, withTea: "green" }],
    },
    patchExamples: { "cups.v1.Rules": [{ fixed: null }] },
    deprecation: {},
  },
  { title: "Cups", version: "1", basePath: "", requestMs: 1, codec: "exact" },
) as never as {
  paths: Record<
    string,
    Record<string, { description?: string; requestBody: Content; responses: Record<string, Content> }>
  >;
  components: { schemas: Record<string, { properties: Record<string, Record<string, unknown>> }> };
};
const refer = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const JSON_TYPE = "application/json";

test.each([
  ["/items", { type: "array", items: refer("Item") }],
  ["/named", { type: "object", additionalProperties: refer("Item") }],
])("a list or a map of messages as a body: %s", (path, schema) => {
  expect(paths[path]?.put?.requestBody.content[JSON_TYPE]?.schema).toEqual(schema);
});

test.each([
  ["post", "/item", { name: "spoon" }],
  ["post", "/filled", { name: "biscuit" }],
  ["post", "/fill/{id}", { item: { name: "biscuit" }, withTea: "green" }],
  ["patch", "/rules", { fixed: null }],
  ["put", "/items", undefined],
])("the example of the body of %s %s is that of its request, or of its message", (verb, path, example) => {
  for (const content of Object.values(paths[path]?.[verb]?.requestBody.content ?? expect.unreachable()))
    expect(content.example).toEqual(example);
});

const or = (schema: object) => ({ anyOf: [schema, { type: "null" }] });
test.each([
  ["by_name", { type: "object", additionalProperties: refer("Item") }],
  ["list", refer("Get_listlist")],
  ["item", refer("Item")],
  ["text", { type: ["string", "null"] }],
  ["always", { type: "string" }],
  ["at", expect.objectContaining({ type: ["string", "null"], format: "date-time" })],
  ["state", or(refer("State"))],
  ["side", refer("Side")],
])("the answer that is %s, which is null where it can be absent", (field, schema) => {
  expect(paths[`/${field}`]?.get?.responses[200]?.content[JSON_TYPE]?.schema).toEqual(schema);
});

test("rules have the numbers that were written, and none that JSON has not", () => {
  const { in: of, gte, lt, lte, const: one, fixed } = components.schemas.RulesPatch?.properties ?? {};
  expect(of).not.toHaveProperty("enum"); // 0.1 and 0.10000000149 are the same there
  expect(gte?.minimum).toBe(0.1);
  expect(lt?.exclusiveMaximum).toBe(16777216);
  expect(lte).not.toHaveProperty("maximum");
  expect(one).not.toHaveProperty("const");
  expect(fixed).toEqual(or({ type: "string", const: "x" }));
});

test("a merge patch has to name a member where the service does not say that it may name none", () => {
  const patch = "The body is a merge patch: it changes the members that it names, and no others.";
  expect(paths["/rules"]?.patch?.description).toBe(`${patch} It has to name at least one.`);
  expect(paths["/some-rules"]?.patch?.description).toBe(patch);
});
