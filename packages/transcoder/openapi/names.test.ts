/** What contracts call their own, where the document, or another part of a contract, has that name too. */
import type { DescMessage } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { EXACT } from "../contract/codec.ts";
import { operationsOf } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { openApiDocument } from "./document.ts";
import { createSchemas } from "./schemas.ts";

const shop = (messages: string, rpcs: string) => `
  import "google/api/annotations.proto";
  import "transcoder/v1/annotations.proto";
  message Empty {}
  ${messages}
  service Shop { ${rpcs} }`;

const get = (path: string, input: string, output: string) =>
  `rpc Get${path}(${input}) returns (${output}) { option (google.api.http) = {get: "/${path}"}; }`;

interface Parameter {
  $ref?: string;
  name?: string;
}
interface Described {
  operationId: string;
  parameters: Parameter[];
  responses: Record<string, { content?: Record<string, { schema: object }>; headers?: object; links?: object }>;
}
interface Document {
  paths: Record<string, Record<string, Described>>;
  components: Record<"schemas" | "headers", Record<string, { properties: object }>>;
}

/** The document of the services `Shop` of these packages. */
function documentOf(files: Readonly<Record<string, string>>): Document {
  const registry = compileProtos(
    Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`${name}.proto`, `syntax = "proto3"; package ${name}; ${text}`]),
    ),
  );
  const services = Object.keys(files).map((name) => serviceOf(registry, `${name}.Shop`));
  const sources = {
    operations: services.flatMap(operationsOf),
    docs: {},
    files: filesBelow(services.map(({ file }) => file)),
    deprecation: {},
  };
  return openApiDocument(sources, {
    title: "Shop",
    version: "1",
    basePath: "",
    requestMs: 1,
    codec: "exact",
  }) as never as Document;
}

const schemaOf = ({ paths }: Document, path: string) =>
  paths[path]?.get?.responses[200]?.content?.["application/json"]?.schema;

test("enums and messages of one name are told apart", () => {
  const nested = (name: string) =>
    `message ${name} { State state = 1; enum State { STATE_UNSPECIFIED = 0; STATE_${name.toUpperCase()} = 1; } }`;
  const document = documentOf({
    v1: shop(nested("Book") + nested("Order"), get("book", "Empty", "Book") + get("order", "Empty", "Order")),
    v2: shop("message Book { string title = 1; }", get("new", "Empty", "Book")),
  });
  const { schemas } = document.components;
  expect(Object.keys(schemas)).toEqual(["Book", "Order", "State", "v1.Order.State", "v2.Book", "Status", "Problem"]);
  expect(schemas.State).toMatchObject({ enum: ["book"] });
  expect(schemas.Order?.properties).toEqual({ state: { $ref: "#/components/schemas/v1.Order.State" } });
  expect(schemaOf(document, "/new")).toEqual({ $ref: "#/components/schemas/v2.Book" });
});

test("a patch has a name of its own, also beside a message that is called like one", () => {
  const { schemas } = documentOf({
    v1: `import "google/protobuf/field_mask.proto"; ${shop(
      `message Book { string title = 1; }
       message BookPatch { string glue = 1; }
       message Change { Book book = 1; google.protobuf.FieldMask update_mask = 2; }`,
      `${get("patch", "Empty", "BookPatch")}
       rpc ChangeBook(Change) returns (Book) { option (google.api.http) = {patch: "/book" body: "book"}; }`,
    )}`,
  }).components;
  expect(schemas.BookPatch?.properties).toHaveProperty("glue");
  expect(schemas["v1.Book-patch"]?.properties).toHaveProperty("title");
});

test("messages that are called Status and Problem don't take the place of those that failures are told with", () => {
  const document = documentOf({
    v1: shop(
      "message Status { string line = 1; Problem problem = 2; } message Problem {}",
      get("a", "Empty", "Status"),
    ),
  });
  expect(schemaOf(document, "/a")).toEqual({ $ref: "#/components/schemas/v1.Status" });
  const { schemas } = document.components;
  expect(schemas["v1.Status"]?.properties).toEqual({
    line: { type: "string" },
    problem: { $ref: "#/components/schemas/v1.Problem" },
  });
  expect(schemas.Status?.properties).toHaveProperty("code");
  expect(schemas.Problem?.properties).toHaveProperty("detail");
});

test("an own Error without a package has no longer name to take", () => {
  const files = compileProtos({ "bare.proto": 'syntax = "proto3"; message Error {}' });
  const schemas = createSchemas({ docs: {}, files: [] }, EXACT, ["Error"]);
  const desc = files.getMessage("Error") as DescMessage;
  expect(schemas.message(desc, "output")).toEqual({ $ref: "#/components/schemas/Error-2" });
  expect(Object.keys(schemas.components())).toEqual(["Error-2"]);
});

test("a header that only the contract knows is described as its field is", () => {
  const document = documentOf({
    v1: shop(
      `message Book {
         string etag = 1 [(transcoder.v1.field).header = "ETag"];
         int32 stock = 2 [(transcoder.v1.field).header = "X-Stock"];
       }`,
      get("a", "Empty", "Book"),
    ),
  });
  const { headers } = document.components;
  expect(document.paths["/a"]?.get?.responses[200]?.headers).toMatchObject({
    ETag: { $ref: "#/components/headers/ETag" },
    "X-Stock": { $ref: "#/components/headers/X-Stock" },
  });
  expect(headers["X-Stock"]).toMatchObject({ schema: { type: "integer", maximum: 2n ** 31n - 1n } });
  expect(headers.ETag).toMatchObject({ schema: { pattern: expect.any(String) } });
});

test("a header that a request has a field for is listed once", () => {
  const document = documentOf({
    v1: shop(
      `message Ask { string known = 1 [(transcoder.v1.field).header = "if-none-match"]; }
       message Book { string etag = 1 [(transcoder.v1.field).header = "ETag"]; }`,
      get("a", "Ask", "Book"),
    ),
  });
  expect(document.paths["/a"]?.get?.parameters.map(({ name, $ref }) => name ?? $ref?.split("/").at(-1))).toEqual([
    ...["If-None-Match", "IfMatch", "ServerTimeout", "GrpcTimeout", "RequestId"],
  ]);
});

test("a created record leads to what takes its identifier, by whatever name JSON has for it", () => {
  const document = documentOf({
    v1: shop(
      `message Book { int64 id = 1 [json_name = "book-id"]; }
       message Holder { Book book = 1; }`,
      `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/books/{id}"}; }
       rpc Add(Holder) returns (Holder) {
         option (google.api.http) = {post: "/books" body: "book" response_body: "book"};
         option (transcoder.v1.operation) = {success_status: 201 location: "/books/{id}"};
       }`,
    ),
  });
  expect(document.paths["/books"]?.post?.responses[201]?.links).toEqual({
    get: { operationId: "get", parameters: { "book-id": "$response.body#/book-id" } },
  });
});

test("and to nothing else whose variable has the same name", () => {
  const record = (name: string, path: string, id: string) => `
    message ${name} { int64 ${id} = 1; int64 shelf = 2; }
    message ${name}Holder { ${name} it = 1; }
    message ${name}Place { int64 ${id} = 1; int64 shelf = 2; }
    service ${name}s {
      rpc Add${name}(${name}Holder) returns (${name}Holder) {
        option (google.api.http) = {post: "${path}" body: "it" response_body: "it"};
        option (transcoder.v1.operation) = {success_status: 201 location: "${path}/{${id}}"};
      }
      rpc Get${name}(${name}) returns (${name}) { option (google.api.http) = {get: "${path}/{${id}}"}; }
      rpc Move${name}(${name}Place) returns (Empty) { option (google.api.http) = {post: "${path}/{${id}}/place"}; }
      rpc Put${name}(${name}Place) returns (Empty) { option (google.api.http) = {put: "${path}/{${id}}/shelves/{shelf}"}; }
    }`;
  const registry = compileProtos({
    "shop.proto": `syntax = "proto3"; package shop;
      import "google/api/annotations.proto";
      import "transcoder/v1/annotations.proto";
      message Empty {}
      message Ask { int64 old_book_id = 1; }
      ${record("OldBook", "/books", "id")} ${record("Lamp", "/lamps", "id")} ${record("Wire", "/wires", "wire_id")}
      service Stock { rpc GetStock(Ask) returns (Empty) { option (google.api.http) = {get: "/stock/{old_book_id}"}; } }`,
  });
  const services = ["OldBooks", "Lamps", "Wires", "Stock"].map((name) => serviceOf(registry, `shop.${name}`));
  const { paths } = openApiDocument(
    { operations: services.flatMap(operationsOf), docs: {}, files: [], deprecation: {} },
    { title: "Shop", version: "1", basePath: "", requestMs: 1, codec: "exact" },
  ) as never as Document;
  const linksOf = (path: string) => paths[path]?.post?.responses[201]?.links as Record<string, object>;
  expect(Object.keys(linksOf("/books"))).toEqual(["getOldBook", "moveOldBook", "getStock"]);
  expect(linksOf("/books").getStock).toMatchObject({ parameters: { oldBookId: "$response.body#/id" } });
  expect(Object.keys(linksOf("/lamps"))).toEqual(["getLamp", "moveLamp"]);
  expect(Object.keys(linksOf("/wires"))).toEqual(["getWire", "moveWire"]);
});

test("of a path with several variables each is filled", () => {
  const document = documentOf({
    v1: shop(
      "message Book { int64 shelf = 1; int64 id = 2; } message Ask { int64 shelf_id = 1; int64 book_id = 2; }",
      `rpc Get(Ask) returns (Book) { option (google.api.http) = {get: "/shelves/{shelf_id}/books/{book_id}"}; }
       rpc List(Ask) returns (Book) { option (google.api.http) = {get: "/shelves/{shelf_id}"}; }
       rpc Add(Book) returns (Book) {
         option (google.api.http) = {post: "/shelves/{shelf}/books"};
         option (transcoder.v1.operation) = {success_status: 201 location: "/shelves/{shelf}/books/{id}"};
       }`,
    ),
  });
  expect(document.paths["/shelves/{shelf}/books"]?.post?.responses[201]?.links).toEqual({
    get: { operationId: "get", parameters: { shelfId: "$response.body#/shelf", bookId: "$response.body#/id" } },
  });
});

test("paths that differ in the names of their variables alone are one, with the names of the first", () => {
  const { paths } = documentOf({
    v1: shop(
      "message Ask { int64 isbn = 1; } message Give { int64 book_id = 1; string shelf = 2; }",
      `rpc GetBook(Ask) returns (Empty) { option (google.api.http) = {get: "/books/{isbn}/place"}; }
       rpc PutBook(Give) returns (Empty) { option (google.api.http) = {put: "/books/{book_id}/place" body: "shelf"}; }`,
    ),
  });
  expect(Object.keys(paths)).toEqual(["/books/{isbn}/place"]);
  const { get: read, put: write } = paths["/books/{isbn}/place"] ?? {};
  // It is the same parameter of both.
  for (const operation of [read, write]) expect(operation?.parameters[0]).toMatchObject({ name: "isbn", in: "path" });
});

test("services of one name in two packages have operations of their own", () => {
  const { paths } = documentOf({
    v1: shop("", get("old", "Empty", "Empty").replace("Getold", "Read")),
    v2: shop("", get("new", "Empty", "Empty").replace("Getnew", "Read")),
  });
  expect(Object.values(paths).map(({ get }) => get?.operationId)).toEqual(["v1.Shop.read", "v2.Shop.read"]);
});
