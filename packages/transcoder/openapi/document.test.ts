/** What the document says of a contract that it does not know. */
import { expect, test } from "vitest";
import { filesBelow } from "../contract/files.ts";
import { operationsOf } from "../contract/operations.ts";
import { compileProtos, serviceOf } from "../testdata/compile.ts";
import { openApiDocument } from "./document.ts";

const service = serviceOf(
  compileProtos({
    "shop.proto": `syntax = "proto3";
      package shop.v1;
      import "buf/validate/validate.proto";
      import "google/api/annotations.proto";
      message Author { string name = 1; Town town = 2; }
      message Town { string name = 1; }
      message Book {
        Author author = 1;
        optional string code = 2 [(buf.validate.field).string.pattern = "(?i)^a+$"];
        optional string cel = 3 [(buf.validate.field).cel = {id: "x" message: "x" expression: "this.matches('(?i)b')"}];
        optional bytes cover = 4 [(buf.validate.field).bytes.max_len = 16];
        string note = 5 [(buf.validate.field).string.min_len = 5, (buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE];
        optional string plain = 6 [(buf.validate.field).string = {pattern: "^a+$" max_len: 9}];
      }
      message GetRequest { int64 id = 1; string shelf = 2 [(buf.validate.field).required = true]; string lamp = 3; }
      message PutRequest { int64 id = 1; Book book = 2; }
      service Shop {
        rpc GetBook(GetRequest) returns (Book) { option (google.api.http) = {get: "/books/{id}"}; }
        rpc PutBook(PutRequest) returns (Book) { option (google.api.http) = {put: "/books/{id}" body: "book"}; }
      }`,
  }),
  "shop.v1.Shop",
);
const document = openApiDocument(
  { operations: operationsOf(service), docs: {}, files: filesBelow([service.file]), deprecation: {} },
  { title: "Shop", version: "1.0.0", basePath: "", requestMs: 1000 },
) as never as {
  components: { schemas: Record<string, { required?: string[]; properties: Record<string, object> }> };
  paths: Record<string, { get: { parameters: { name?: string; required?: boolean }[] } }>;
};
const { Book, Author, Town } = document.components.schemas;

test("what callers send requires no more than the contract does, however deep, also where it comes back to them", () => {
  expect([Book, Author, Town].map((schema) => schema?.required)).toEqual([undefined, undefined, undefined]);
});

test("a pattern that RE2 alone knows is left out, and all others are there", () => {
  expect(Book?.properties).toMatchObject({ code: { type: "string" }, plain: { pattern: "^a+$", maxLength: 9 } });
  for (const name of ["code", "cel"]) expect(Book?.properties[name]).not.toHaveProperty("pattern");
});

test("rules of bytes are not those of base64, and where zero is accepted no keyword says otherwise", () => {
  expect(Book?.properties.cover).toEqual({ type: "string", contentEncoding: "base64" });
  expect(Book?.properties.note).toEqual({ type: "string" });
});

test("a parameter that has to be there is required", () => {
  const { parameters } = document.paths["/books/{id}"]?.get ?? { parameters: [] };
  const required = parameters.flatMap(({ name, required }) => (name === undefined ? [] : [[name, required]]));
  expect(required).toEqual([
    ["id", true],
    ["shelf", true],
    ["lamp", undefined],
  ]);
});
