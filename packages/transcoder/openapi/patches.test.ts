/** What the document says of updates, of texts in a query, and of what it leaves out. */
import { expect, test } from "vitest";
import { operationsOf } from "../contract/operations.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { openApiDocument } from "./document.ts";
import { jsonText } from "./json.ts";
import type { About } from "./sources.ts";

const wide = Array.from({ length: 600 }, (_, i) => `int32 n${i} = ${i + 1};`).join(" ");
const service = serviceOf(
  compileProtos({
    "books.proto": `syntax = "proto3";
      package books.v1;
      import "google/api/annotations.proto";
      import "google/api/field_behavior.proto";
      import "google/protobuf/field_mask.proto";
      message Author {
        string name = 1 [(google.api.field_behavior) = REQUIRED];
        Author teacher = 2;
      }
      message Book {
        string title = 1 [(google.api.field_behavior) = REQUIRED];
        Author author = 2 [(google.api.field_behavior) = REQUIRED];
        repeated Author editors = 3;
      }
      message UpdateBookRequest {
        Book book = 1 [(google.api.field_behavior) = REQUIRED];
        // Which fields.
        google.protobuf.FieldMask update_mask = 2 [(google.api.field_behavior) = REQUIRED];
        string note = 3;
      }
      message Wide { ${wide} }
      service Books {
        // Updates a book. Not its shelf.
        rpc UpdateBook(UpdateBookRequest) returns (Book) {
          option (google.api.http) = {
            patch: "/books" body: "book"
            additional_bindings: {put: "/books" body: "book"}
            additional_bindings: {patch: "/wholes" body: "*"}
          };
        }
        rpc FindWide(Wide) returns (Author) { option (google.api.http) = {get: "/wide"}; }
      }`,
  }),
  "books.v1.Books",
);

interface Parameter {
  readonly name?: string;
  readonly in?: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: object;
}
interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
}

function documentOf(options: Partial<About> = {}) {
  const sources = { operations: operationsOf(service), files: [service.file], deprecation: {} };
  const about = { title: "Books", version: "1", basePath: "", requestMs: 1000, ...options };
  return JSON.parse(jsonText(openApiDocument(sources, about))) as {
    tags: object[];
    paths: Record<string, Record<"get" | "put" | "patch", Operation>>;
    components: { schemas: Record<string, { properties: Record<string, object>; required?: string[] }> } & Record<
      string,
      object
    >;
  };
}
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const { paths, components, tags } = documentOf();
const { schemas } = components;
const maskIn = (of: typeof paths, path: string, verb: "put" | "patch") =>
  of[path]?.[verb].parameters.find(({ name }) => name === "updateMask");

test("a merge patch requires nothing, however deep; what it replaces as a whole is whole", () => {
  expect(paths["/books"]?.patch.requestBody.content["application/json"]?.schema).toEqual(ref("BookPatch"));
  expect(schemas.BookPatch?.required).toBeUndefined();
  expect(schemas.BookPatch?.properties).toMatchObject({
    author: { anyOf: [ref("AuthorPatch"), { type: "null" }] },
    editors: { items: ref("Author") },
  });
  expect(schemas.AuthorPatch?.required).toBeUndefined();
  expect(schemas.AuthorPatch?.properties.teacher).toMatchObject({ anyOf: [ref("AuthorPatch"), { type: "null" }] });
  expect(schemas.Author?.required).toEqual(["name"]);
});

test("a request with a merge patch in it has one schema, whatever media type it goes by, and requires no mask", () => {
  const { content } = paths["/wholes"]?.patch.requestBody ?? {};
  const bodies = Object.values(content ?? {}).map(({ schema }) => schema);
  expect(bodies).toEqual([ref("UpdateBookRequestPatch"), ref("UpdateBookRequestPatch")]);
  expect(schemas.UpdateBookRequestPatch?.required).toEqual(["book"]);
  expect(schemas.UpdateBookRequestPatch?.properties.book).toMatchObject({
    anyOf: [ref("BookPatch"), { type: "null" }],
  });
});

test("the mask is a parameter that need not be given, where the query may have it", () => {
  expect(maskIn(paths, "/books", "patch")).toEqual({
    name: "updateMask",
    in: "query",
    description: "Which fields. Without it what the body names is changed.",
    schema: { type: "string" },
  });
  expect(maskIn(paths, "/books", "put")?.description).toBe("Which fields. Without it all is changed.");
  expect(maskIn(documentOf({ maskFromBodyOnly: true }).paths, "/books", "patch")).toBeUndefined();
});

test("a text in a query may be empty in proto3 JSON, and nowhere else", () => {
  const note = (of: typeof paths) => of["/books"]?.patch.parameters.find(({ name }) => name === "note")?.schema;
  expect(note(paths)).toEqual({ type: "string" });
  expect(note(documentOf({ codec: "exact" }).paths)).toEqual({ type: "string", minLength: 1 });
});

test("where not all parameters are listed, the description says so", () => {
  expect(paths["/wide"]?.get.description).toMatch(/^Only the parameters of the request's first 500 fields/);
  expect(paths["/books"]?.patch.description).not.toMatch(/first 500 fields/);
});

test("comments of the contract are its texts, and a tag without one has none", () => {
  expect(paths["/books"]?.patch.summary).toBe("Updates a book");
  expect(paths["/books"]?.patch.description).toMatch(/^Not its shelf\.\n\nThe body is a merge patch/);
  expect(tags).toEqual([{ name: "Books" }]);
});

test("no component that nothing refers to", () => {
  const text = jsonText({ paths, components } as never);
  for (const [kind, named] of Object.entries(components))
    for (const name of Object.keys(named)) expect(text).toContain(`"#/components/${kind}/${name}"`);
  expect(Object.keys(components.parameters ?? {})).not.toContain("IfMatch");
});
