/** How a document tells of paths and verbs that OpenAPI 3.1 has no words for. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { operationsOf } from "../contract/operations.ts";
import { filesBelow } from "../descriptors.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { openApiDocument } from "./document.ts";

const service = serviceOf(
  compileProtos({
    "library.proto": `syntax = "proto3";
      package library.v1;
      import "google/api/annotations.proto";
      message Asked {
        // The book's name.
        string name = 1;
        string shelf = 2;
        int64 number = 3;
      }
      message Told {}
      service Library {
        rpc Get(Asked) returns (Told) { option (google.api.http) = {get: "/v1/{name=shelves/*/books/*}"}; }
        rpc Lend(Asked) returns (Told) { option (google.api.http) = {post: "/v1/{name=shelves/*/books/*}:lend" body: "*"}; }
        rpc Change(Asked) returns (Told) { option (google.api.http) = {put: "/v1/shelves/{shelf}/books/{number}" body: "*"}; }
        rpc Read(Asked) returns (Told) { option (google.api.http) = {get: "/files/{name=**}"}; }
        rpc Number(Asked) returns (Told) { option (google.api.http) = {get: "/files/{number}"}; }
        rpc Search(Asked) returns (Told) { option (google.api.http) = {get: "/*/search" body: "*"}; }
        rpc Link(Asked) returns (Told) { option (google.api.http) = {custom: {kind: "LINK" path: "/v1/{name=shelves/*}"}}; }
        rpc Any(Asked) returns (Told) { option (google.api.http) = {custom: {kind: "*" path: "/v1/{name=shelves/*}"}}; }
        rpc Root(Asked) returns (Told) { option (google.api.http) = {get: "/"}; }
      }`,
  }),
  "library.v1.Library",
);

type Parameters = { name?: string; description?: string; schema?: object }[];
const document = openApiDocument(
  {
    operations: operationsOf(service),
    docs: { "library.v1.Asked.name": "The book's name." },
    files: filesBelow([service.file]),
    deprecation: {},
  },
  { title: "Library", version: "1", basePath: "", requestMs: 1, codec: "exact" },
) as unknown as { paths: Record<string, Record<string, { operationId: string; parameters: Parameters }>> };

const inPath = (path: string, verb: string) =>
  document.paths[path]?.[verb]?.parameters.filter((one) => "in" in one && one.in === "path");

test("is a document of OpenAPI", async () => {
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
});

test("paths that are alike but for their names are one", () => {
  expect(Object.keys(document.paths)).toEqual([
    "/v1/shelves/{shelf}/books/{book}",
    "/v1/shelves/{shelf}/books/{book}:lend",
    "/files/{name}",
    "/{segment}/search",
    "/v1/shelves/{shelf}",
    "/",
  ]);
  expect(inPath("/v1/shelves/{shelf}/books/{book}", "put")?.map(({ name, schema }) => [name, schema])).toEqual([
    ["shelf", expect.objectContaining({ type: "string" })],
    ["book", expect.objectContaining({ type: "integer" })],
  ]);
});

test("a variable of several segments is a parameter for each of its wildcards", () => {
  const part = (name: string) => ({
    name,
    in: "path",
    required: true,
    description: "Part of `name` in the path `/v1/{name=shelves/*/books/*}`.",
    schema: { type: "string", minLength: 1 },
  });
  expect(inPath("/v1/shelves/{shelf}/books/{book}", "get")).toEqual([part("shelf"), part("book")]);
  expect(inPath("/files/{name}", "get")).toMatchObject([
    { name: "name", description: "The book's name. It can have slashes, which stay as they are." },
  ]);
  expect(inPath("/{segment}/search", "get")).toMatchObject([
    { name: "segment", description: "Any text: part of the path `/*/search`." },
  ]);
});

test("what has no place stands beside the others, by verb and route", () => {
  expect(document.paths["/v1/shelves/{shelf}"]?.["x-additional-operations"]).toMatchObject({
    "LINK /v1/{name=shelves/*}": { operationId: "link" },
    "* /v1/{name=shelves/*}": { operationId: "any" },
  });
  expect(document.paths["/files/{name}"]).toMatchObject({
    get: { operationId: "read" },
    "x-additional-operations": { "GET /files/{number}": { operationId: "number" } },
  });
});
