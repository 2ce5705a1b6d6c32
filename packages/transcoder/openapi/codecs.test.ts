/** What the document says of values, in both codecs, and of fields by their annotations of google.api. */
import { expect, test } from "vitest";
import type { CodecOptions } from "../contract/codec.ts";
import { operationsOf } from "../contract/operations.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { openApiDocument } from "./document.ts";
import { jsonText } from "./json.ts";

const service = serviceOf(
  compileProtos({
    "shop.proto": `syntax = "proto3";
      package shop.v1;
      import "buf/validate/validate.proto";
      import "google/api/annotations.proto";
      import "google/api/field_behavior.proto";
      import "google/api/resource.proto";
      import "google/protobuf/any.proto";
      import "google/protobuf/duration.proto";
      import "google/protobuf/field_mask.proto";
      import "google/protobuf/struct.proto";
      import "google/protobuf/wrappers.proto";
      enum Size { SIZE_UNSPECIFIED = 0; SIZE_SMALL = 1; }
      message Item {
        int64 price = 1 [(buf.validate.field).int64 = {gte: 1, lte: 99}];
        uint64 only = 2 [(buf.validate.field).uint64.in = 5];
        repeated int64 prices = 3 [(buf.validate.field).repeated.items.int64.gte = 2];
        Size size = 4;
        repeated Size sizes = 5;
        google.protobuf.Duration length = 6;
        google.protobuf.Struct data = 7;
        google.protobuf.Value value = 8;
        google.protobuf.ListValue list = 9;
        google.protobuf.Any any = 10;
        google.protobuf.Int64Value many = 11;
        google.protobuf.NullValue nothing = 12;
        map<string, google.protobuf.FieldMask> masks = 13;
        Item part = 14;
        oneof choice { string left = 15; int64 right = 16; }
      }
      message Made {
        string display_name = 1 [(google.api.field_behavior) = REQUIRED];
        string name = 2 [(google.api.field_behavior) = OUTPUT_ONLY, (google.api.field_behavior) = IDENTIFIER];
        string secret = 3 [(google.api.field_behavior) = INPUT_ONLY];
        string kind = 4 [(google.api.field_behavior) = IMMUTABLE, deprecated = true];
        string topic = 5 [(google.api.resource_reference).type = "shop.example/Topic"];
        string parent = 6 [(google.api.resource_reference).child_type = "shop.example/Topic"];
      }
      message Held { Made made = 1; }
      service Shop {
        rpc GetItem(Made) returns (Item) { option (google.api.http) = {get: "/item"}; option deprecated = true; }
        rpc PutItem(Item) returns (Item) { option (google.api.http) = {put: "/item" body: "*"}; }
        rpc PutMade(Held) returns (Made) { option (google.api.http) = {put: "/made" body: "made"}; }
        rpc Measure(google.protobuf.Struct) returns (google.protobuf.Duration) {
          option (google.api.http) = {post: "/measure" body: "*"};
        }
      }`,
  }),
  "shop.v1.Shop",
);

interface Schema {
  readonly description?: string;
  readonly properties: Record<string, object>;
  readonly required?: string[];
}
type Operation = { deprecated?: boolean; requestBody: { content: Record<string, { schema: object }> } } & {
  responses: Record<string, { content: Record<string, { schema: object }> }>;
};

function documentOf(options: Omit<CodecOptions, "registry">) {
  const sources = {
    operations: operationsOf(service),
    docs: {},
    files: [],
    deprecation: {},
  };
  const document = openApiDocument(sources, {
    title: "Shop",
    version: "1.0.0",
    basePath: "",
    requestMs: 1000,
    ...options,
  });
  return JSON.parse(jsonText(document)) as {
    components: { schemas: Record<string, Schema> };
    paths: Record<string, Record<string, Operation>>;
  };
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const duration = { type: "string", pattern: "^-?\\d{1,12}(\\.\\d{1,9})?s$" };

test("proto3 JSON", () => {
  const { components } = documentOf({});
  expect(components.schemas.Item?.properties).toEqual({
    price: { type: "string", format: "int64", description: "At least 1. At most 99." },
    only: { type: "string", format: "uint64", enum: ["5"] },
    prices: { type: "array", items: { type: "string", format: "int64", description: "At least 2." } },
    size: ref("Size"),
    sizes: { type: "array", items: ref("Size") },
    length: { ...duration, type: ["string", "null"] },
    data: { type: ["object", "null"], additionalProperties: true },
    value: { anyOf: [{ description: "Any JSON." }, { type: "null" }] },
    list: { type: ["array", "null"], items: {} },
    any: expect.objectContaining({ type: ["object", "null"], additionalProperties: true }),
    many: { type: ["string", "null"], format: "int64" },
    nothing: { type: "null" },
    masks: { type: "object", additionalProperties: { type: "string" } },
    part: { anyOf: [ref("Item"), { type: "null" }] },
    left: { type: "string" },
    right: { type: "string", format: "int64" },
  });
  expect(components.schemas.Item?.description).toBe("At most one of `left`, `right`.");
  expect(components.schemas.Size).toEqual({ type: "string", enum: ["SIZE_UNSPECIFIED", "SIZE_SMALL"] });
});

test("the exact codec", () => {
  const { components } = documentOf({ codec: "exact" });
  expect(components.schemas.Item?.properties).toMatchObject({
    price: { type: "integer", format: "int64", minimum: 1, maximum: 99 },
    length: duration,
    data: { type: "object", additionalProperties: true },
    many: { type: "integer", format: "int64" },
    part: ref("Item"),
  });
  expect(components.schemas.Size).toEqual({ type: "string", enum: ["small"] });
});

test("names of the contract, enums as numbers, and members that may be absent", () => {
  const { components } = documentOf({ originalNames: true, enumNumbers: true, omitUnpopulated: true });
  expect(components.schemas.Made?.properties).toHaveProperty("display_name");
  expect(components.schemas.Size).toEqual({ type: "integer", enum: [0, 1] });
  expect(components.schemas.Item?.properties).toMatchObject({ length: duration });
});

test("annotations of google.api, and what is deprecated", () => {
  const { components, paths } = documentOf({});
  expect(components.schemas.Made?.required).toEqual(["displayName"]);
  expect(components.schemas.Made?.properties).toEqual({
    displayName: { type: "string" },
    name: { type: "string", readOnly: true, description: "Identifies the resource." },
    secret: { type: "string", writeOnly: true },
    kind: { type: "string", deprecated: true, description: "Can't be changed once it is set." },
    topic: { type: "string", description: "The name of a resource of the type `shop.example/Topic`." },
    parent: { type: "string", description: "The name of the parent of resources of the type `shop.example/Topic`." },
  });
  expect(paths["/item"]?.get?.deprecated).toBe(true);
  expect(paths["/item"]?.put?.deprecated).toBeUndefined();
});

test("a whole request and a whole answer of a well-known type", () => {
  const measure = documentOf({}).paths["/measure"]?.post;
  expect(measure?.requestBody.content["application/json"]?.schema).toEqual({
    type: "object",
    additionalProperties: true,
  });
  expect(measure?.responses[200]?.content["application/json"]?.schema).toEqual(duration);
});
