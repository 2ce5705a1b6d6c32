import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";

const shelf = serviceOf(
  compileProtos({
    "shelf.proto": `syntax = "proto3";
      package shelf.v1;
      import "google/api/annotations.proto";
      import "google/protobuf/empty.proto";
      message Shelf { int64 id = 1 [json_name = "shelf-id"]; int64 place = 2; }
      service ShelfService {
        rpc GetShelf(Shelf) returns (Shelf) { option (google.api.http) = {get: "/shelves/{id}/{place}"}; }
        rpc Dust(Shelf) returns (Shelf) { option (google.api.http) = {post: "/shelves/{id}"}; }
        rpc Clear(Shelf) returns (google.protobuf.Empty) { option (google.api.http) = {delete: "/shelves/{id}"}; }
      }`,
  }),
  "shelf.v1.ShelfService",
);

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  server = await serve(shelf, {
    getShelf: (request: unknown) => request,
    clear: () => ({}),
    dust: (request: unknown) => request,
  } as never);
});
afterAll(() => server.app.close());

test("a path has room for a field whose name in JSON is no word", async () => {
  expect((await server.call("/shelves/3/4")).record()).toEqual({ "shelf-id": 3, place: 4 });
  expect((await server.call("/shelves/x/4")).record()).toMatchObject({ message: "shelf-id: must be an integer" });
});

test("google.protobuf.Empty is an answer without members", async () => {
  expect(await server.call("/shelves/3", { method: "DELETE" })).toMatchObject({ status: 200, text: "{}" });
});

test("content means nothing to an operation that takes none, whatever its type and size", async () => {
  const init = { method: "POST", body: "x".repeat(100_000), headers: { "content-type": "text/plain" } };
  expect((await server.call("/shelves/3", init)).record()).toEqual({ "shelf-id": 3, place: 0 });
  const half = { method: "POST", body: '{"place":', headers: { "content-type": "application/json" } };
  expect((await server.call("/shelves/4", half)).record()).toEqual({ "shelf-id": 4, place: 0 });
});
