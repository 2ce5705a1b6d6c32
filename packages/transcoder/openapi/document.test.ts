/** What the document says of a contract that it does not know. */
import { expect, test } from "vitest";
import { operationsOf } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
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
        int32 outside = 7 [(buf.validate.field).int32 = {gt: 10 lt: 5}];
        double far = 8 [(buf.validate.field).double = {gte: 10 lte: 5}];
        int32 within = 9 [(buf.validate.field).int32 = {gt: 5 lt: 10}];
        optional string line = 10 [(buf.validate.field).string.pattern = "^[\\\\t ].$"];
        optional string escape = 11 [(buf.validate.field).cel = {id: "x" message: "x" expression: "this.matches('\\\\n')"}];
        optional string word = 12 [(buf.validate.field).cel_expression = "this.matches('^w+$')"];
        optional string plain = 6 [(buf.validate.field).string = {pattern: "^a+$" max_len: 9}];
        int64 any = 13;
        uint64 natural = 14;
        int64 high = 15 [(buf.validate.field).int64 = {gte: 9007199254740992 lte: 9007199254740993}];
        int64 low = 16 [(buf.validate.field).int64 = {gt: -9007199254740993 lt: -9007199254740991}];
        int64 held = 17 [(buf.validate.field).int64 = {gte: -9007199254740991 lte: 9007199254740991}];
        optional uint64 one = 18 [(buf.validate.field).uint64.const = 18446744073709551615];
        optional int64 some = 19 [(buf.validate.field).int64 = {in: [1, 9007199254740993]}];
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
  { title: "Shop", version: "1.0.0", basePath: "", requestMs: 1000, codec: "exact" },
) as never as {
  components: { schemas: Record<string, { required?: string[]; properties: Record<string, object> }> };
  paths: Record<string, { get: { parameters: { name?: string; required?: boolean }[] } }>;
};
const { Book, Author, Town } = document.components.schemas;

test("what callers send requires no more than the contract does, however deep, also where it comes back to them", () => {
  expect([Book, Author, Town].map((schema) => schema?.required)).toEqual([
    ["within", "high", "low"],
    undefined,
    undefined,
  ]);
});

test("a pattern that RE2 alone knows is left out and told in words, and all others are there, with the same meaning", () => {
  expect(Book?.properties).toMatchObject({
    code: { type: "string", description: "Matches `(?i)^a+$` (RE2)." },
    cel: { type: "string", description: "Matches `(?i)b` (RE2)." },
    plain: { pattern: "^a+$", maxLength: 9 },
    word: { pattern: "^w+$" },
    line: { pattern: "^[\\t ][^\\n]$" },
  });
  for (const name of ["code", "cel", "escape"]) expect(Book?.properties[name]).not.toHaveProperty("pattern");
});

test("rules of bytes are not those of base64, and where zero is accepted no keyword says otherwise", () => {
  expect(Book?.properties.cover).toEqual({ type: "string", contentEncoding: "base64" });
  expect(Book?.properties.note).toEqual({ type: "string" });
});

test("limits the wrong way round allow what is outside of them, which no keyword says", () => {
  const { outside, far, within } = Book?.properties ?? {};
  expect(outside).toMatchObject({ minimum: -(2n ** 31n), maximum: 2n ** 31n - 1n });
  for (const limit of ["minimum", "maximum"]) expect(far).not.toHaveProperty(limit);
  expect(within).toMatchObject({ minimum: 6n, maximum: 9n });
});

test("a limit that JavaScript would round is told in words", () => {
  const { any, natural, high, low, held, one, some } = Book?.properties ?? {};
  const integer = { type: "integer", format: "int64" };
  const [least, most] = [-(2n ** 53n) + 1n, 2n ** 53n - 1n];
  expect(any).toEqual(integer);
  expect(natural).toEqual({ type: "integer", format: "uint64", minimum: 0n });
  expect(high).toEqual({
    ...integer,
    minimum: most,
    description: "At most 9007199254740993. At least 9007199254740992.",
  });
  expect(low).toEqual({
    ...integer,
    maximum: least,
    description: "At most -9007199254740992. At least -9007199254740992.",
  });
  expect(held).toEqual({ ...integer, minimum: least, maximum: most });
  expect(one).toEqual({ type: "integer", format: "uint64", minimum: 0n, description: "Only 18446744073709551615." });
  expect(some).toEqual({ ...integer, description: "Only 1, 9007199254740993." });
});

test("RPCs of one name in two services have ids of their own", () => {
  const shop = (name: string) => `
    service ${name} {
      rpc GetBook(Request) returns (Book) { option (google.api.http) = {get: "/${name}/book"}; }
      rpc Only${name}(Request) returns (Book) { option (google.api.http) = {get: "/${name}/only"}; }
    }`;
  const files = compileProtos({
    "shop.proto": `syntax = "proto3";
      package shop.v1;
      import "google/api/annotations.proto";
      message Request {}
      message Book {}
      ${shop("Old")} ${shop("New")}`,
  });
  const services = ["shop.v1.Old", "shop.v1.New"].map((name) => serviceOf(files, name));
  const { paths } = openApiDocument(
    {
      operations: services.flatMap(operationsOf),
      docs: {},
      files: filesBelow(services.map(({ file }) => file)),
      deprecation: {},
    },
    { title: "Shop", version: "1.0.0", basePath: "", requestMs: 1000, codec: "exact" },
  ) as never as { paths: Record<string, { get: { operationId: string } }> };
  expect(Object.values(paths).map(({ get }) => get.operationId)).toEqual([
    "Old_getBook",
    "onlyOld",
    "New_getBook",
    "onlyNew",
  ]);
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

test("a successor's variables go by the names of the path, and what is no part of it by its own", () => {
  const items = serviceOf(
    compileProtos({
      "items.proto": `syntax = "proto3";
        package items.v1;
        import "google/api/annotations.proto";
        import "transcoder/v1/annotations.proto";
        message Item {}
        message Read { int64 item_id = 1; }
        message Drop { int64 id = 1; int64 shelf_id = 2; }
        service Items {
          rpc ReadItem(Read) returns (Item) { option (google.api.http) = {get: "/items/{item_id}"}; }
          rpc DropItem(Drop) returns (Item) {
            option (google.api.http) = {delete: "/items/{id}"};
            option (transcoder.v1.operation).deprecation = {
              deprecated_at: "2020-01-01T00:00:00Z" sunset_at: "2030-01-01T00:00:00Z" successor: "/things/{id}?shelf={shelf_id}"
            };
          }
        }`,
    }),
    "items.v1.Items",
  );
  const { paths } = openApiDocument(
    { operations: operationsOf(items), docs: {}, files: filesBelow([items.file]), deprecation: {} },
    { title: "Items", version: "1.0.0", basePath: "", requestMs: 1000, codec: "exact" },
  ) as never as { paths: Record<string, { delete: { description: string } }> };
  expect(paths["/items/{itemId}"]?.delete.description).toContain("/things/{itemId}?shelf={shelfId}");
});
