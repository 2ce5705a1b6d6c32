/** A PATCH fills the update mask of its RPC with what the merge patch names, at any depth. */
import { toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { createCodec, EXACT } from "../contract/codec.ts";
import type { Operation } from "../contract/operation.ts";
import { operationsOf } from "../contract/operations.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { prepareValidation } from "../validation/validate.ts";
import { type InputOptions, inputReader } from "./input.ts";

const registry = compileProtos({
  "patch.proto": `syntax = "proto3";
    package patch.v1;
    import "buf/validate/validate.proto";
    import "google/api/annotations.proto";
    import "google/protobuf/field_mask.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    import "transcoder/v1/annotations.proto";
    message Name { string given = 1 [(buf.validate.field).string.min_len = 2]; string family = 2 [(buf.validate.field).string.min_len = 2]; }
    message Author { Name name = 1; int32 birth_year = 2; optional string note = 3 [(transcoder.v1.field).clearable = true]; }
    message Nothing {}
    message Book {
      string name = 1;
      string title = 2;
      Author author = 3;
      map<string, string> labels = 4;
      map<string, Author> others = 5;
      repeated Author editors = 6;
      google.protobuf.Timestamp at = 7;
      google.protobuf.Struct extra = 8;
      google.protobuf.Int64Value weight = 9;
      Nothing nothing = 10;
      string etag = 11 [(transcoder.v1.field).output_only = true];
      Book sequel = 12;
    }
    message Update { Book book = 1; google.protobuf.FieldMask update_mask = 2; bool dry_run = 3; }
    message Choice { oneof it { Book book = 1; string other = 2; } google.protobuf.FieldMask update_mask = 3; }
    message Plain { Book book = 1; string id = 2; }
    message Two { Book book = 1; Author author = 2; google.protobuf.FieldMask update_mask = 3; }
    message Answer {}
    service Patches {
      rpc Field(Update) returns (Answer) { option (google.api.http) = {patch: "/{book.name=books/*}" body: "book" additional_bindings: {put: "/{book.name=books/*}" body: "book"}}; }
      rpc Whole(Update) returns (Answer) { option (google.api.http) = {patch: "/whole" body: "*"}; }
      rpc Chosen(Choice) returns (Answer) { option (google.api.http) = {patch: "/chosen" body: "book"}; }
      rpc Plain(patch.v1.Plain) returns (Answer) { option (google.api.http) = {patch: "/plain/{id}" body: "book"}; }
      rpc PlainAll(patch.v1.Plain) returns (Answer) { option (google.api.http) = {patch: "/plain" body: "*"}; }
      rpc Text(patch.v1.Plain) returns (Answer) { option (google.api.http) = {patch: "/text" body: "id"}; }
      rpc Bare(patch.v1.Plain) returns (Answer) { option (google.api.http) = {patch: "/bare"}; }
      rpc Two(patch.v1.Two) returns (Answer) { option (google.api.http) = {patch: "/two" body: "*"}; }
      rpc Post(Update) returns (Answer) { option (google.api.http) = {post: "/post" body: "book"}; }
      rpc PostAll(Update) returns (Answer) { option (google.api.http) = {post: "/all" body: "*"}; }
      rpc Get(Update) returns (Answer) { option (google.api.http) = {get: "/get"}; }
    }`,
});
const operations = operationsOf(serviceOf(registry, "patch.v1.Patches"));
await prepareValidation(operations.map(({ method }) => method.input));

const PROTO3: InputOptions = { basePath: "", maxDepth: 200, codec: createCodec({}) };

function read(id: string, target: string, body: unknown, options: Partial<InputOptions> = {}) {
  const operation = operations.find((one) => one.id === id) as Operation;
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  try {
    const message = inputReader(operation, { ...PROTO3, ...options })({
      target,
      headers: {},
      body: bytes,
      strict: true,
    });
    return toJson(operation.method.input, message, { registry }) as Record<string, unknown>;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return { error: `${code} ${message}` };
  }
}
const maskOf = (body: unknown, options?: Partial<InputOptions>) => {
  const { error, updateMask } = read("field", "/books/1", body, options) as Record<string, unknown>;
  return error ?? updateMask;
};

const NAMES = "title, author, labels, others, editors, at, extra, weight, nothing, sequel";
const NOTHING = `VALIDATION_FAILED The body names no member that can be changed: it must name at least one of ${NAMES}`;

describe("paths", () => {
  test.each([
    [{ title: "T" }, "title"],
    [{ title: "T", author: { birthYear: 3 } }, "title,author.birthYear"],
    [{ author: { birth_year: 3, name: { given: "Ann" } } }, "author.birthYear,author.name.given"],
    [{ labels: { a: "b", c: "d" } }, "labels"],
    [{ labels: {} }, "labels"],
    [{ others: { a: { birthYear: 1 } } }, "others"],
    [{ editors: [{ birthYear: 1 }] }, "editors"],
    [{ at: "2027-01-02T00:00:00Z", extra: { a: { b: 1 } }, weight: "7" }, "at,extra,weight"],
    [{ nothing: {} }, "nothing"],
    [{ author: null }, "author"],
    [{ author: { name: null, birthYear: null } }, "author.name,author.birthYear"],
    [{ weight: null, labels: null, editors: null }, "weight,labels,editors"],
    [{ sequel: { sequel: { title: "T" } } }, "sequel.sequel.title"],
    [{ title: "T", etag: "x", name: "books/1" }, "title"],
    [{ author: {} }, NOTHING],
    [{}, NOTHING],
    [{ name: "books/1", etag: "x" }, NOTHING],
    [[], "VALIDATION_FAILED The body must be an object"],
    [{ author: { age: 1 } }, "UNKNOWN_FIELD author.age: is not known here"],
  ])("%j", (body, mask) => {
    expect(maskOf(body)).toBe(mask);
  });

  test("what the patch clears is not there", () => {
    expect(read("field", "/books/1", { author: { name: null } })).toEqual({
      book: { name: "books/1", author: {} },
      updateMask: "author.name",
    });
  });

  test("of a resource within itself they end where JSON does, and are not very many", () => {
    const many = (count: number) => ({
      sequel: Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, 1])),
    });
    expect(maskOf(many(1))).toBe("UNKNOWN_FIELD sequel.x0: is not known here");
    let deep: object = { title: "T" };
    const author = { name: { given: "Ann", family: "Lee" }, birthYear: 1, note: "N" };
    for (let i = 0; i < 95; i++)
      deep = {
        author,
        title: "T",
        labels: {},
        at: null,
        weight: null,
        editors: [],
        extra: {},
        others: {},
        sequel: deep,
      };
    expect(maskOf(deep)).toBe("VALIDATION_FAILED The body must not change more than 1000 members");
  });

  test("in the exact codec null clears what is clearable, at any depth but in a list", () => {
    expect(maskOf({ author: { note: null } }, { codec: EXACT })).toBe("author.note");
    expect(maskOf({ author: { birthYear: null } }, { codec: EXACT })).toMatch(/author.birthYear: must not be null$/);
    expect(maskOf({ editors: [{ note: null }] }, { codec: EXACT })).toMatch(/editors\[0\].note: must not be null$/);
  });

  test("rules on what a patch does not name don't count", () => {
    expect(maskOf({ author: { name: { given: "Ann" } } })).toBe("author.name.given");
    expect(maskOf({ author: { name: { given: "A" } } })).toMatch(/author.name.given: must be at least 2 characters$/);
  });
});

test.each([
  ["title", { title: "T", author: { birthYear: 3 } }, "title"],
  ["author.birth_year,title", {}, "author.birthYear,title"],
  ["*", { title: "T" }, "*"],
  ["", { title: "T" }, ""],
])("an explicit mask in the query counts: %s %j", (given, body, mask) => {
  expect(read("field", `/books/1?updateMask=${given}`, body)).toMatchObject({ updateMask: mask });
});

test("but not where the mask is to come from the body", () => {
  const [target, maskFromBodyOnly] = ["/books/1?updateMask=title", true];
  expect(read("field", target, { title: "T" }, { maskFromBodyOnly })).toEqual({
    error: "UNKNOWN_FIELD updateMask: is not known here",
  });
});

test.each([
  [
    "the path is in the body too",
    "field",
    "/books/1",
    { name: "books/1", title: "T" },
    { book: { name: "books/1", title: "T" }, updateMask: "title" },
  ],
  [
    "as another one",
    "field",
    "/books/1",
    { name: "books/2", title: "T" },
    { error: "VALIDATION_FAILED name: differs from the value in the path: leave it out, or say the same" },
  ],
  ["PUT", "fieldPut", "/books/1", { title: "T" }, { book: { name: "books/1", title: "T" } }],
  [
    "PUT with a mask",
    "fieldPut",
    "/books/1?updateMask=title",
    { title: "T" },
    { book: { name: "books/1", title: "T" }, updateMask: "title" },
  ],
  [
    "beside the body",
    "field",
    "/books/1?dryRun=true",
    { title: "T" },
    { book: { name: "books/1", title: "T" }, updateMask: "title", dryRun: true },
  ],
  [
    "the whole request",
    "whole",
    "/whole",
    { book: { author: { birthYear: 3 } }, dryRun: true },
    { book: { author: { birthYear: 3 } }, updateMask: "author.birthYear", dryRun: true },
  ],
  [
    "with a mask of its own",
    "whole",
    "/whole",
    { book: { title: "T" }, updateMask: "author" },
    { book: { title: "T" }, updateMask: "author" },
  ],
  [
    "with one in the query",
    "whole",
    "/whole?updateMask=at",
    { book: { title: "T" }, updateMask: "author" },
    { book: { title: "T" }, updateMask: "at" },
  ],
  [
    "without the resource, which a service might take for all fields",
    "whole",
    "/whole",
    { dryRun: true },
    {
      error:
        "VALIDATION_FAILED The body names no member that can be changed: it must name at least one of name, title, author, labels, others, editors, at, extra, weight, nothing, sequel",
    },
  ],
  [
    "without the resource, but with a mask",
    "whole",
    "/whole",
    { dryRun: true, updateMask: "author" },
    { dryRun: true, updateMask: "author" },
  ],
  ["in a oneof", "chosen", "/chosen", { title: "T" }, { book: { title: "T" }, updateMask: "title" }],
  [
    "with another of the oneof",
    "chosen",
    "/chosen?other=x",
    { title: "T" },
    { error: "VALIDATION_FAILED The body must not be given together with another field of its oneof" },
  ],
  ["without a mask field", "plain", "/plain/7", { title: "T" }, { book: { title: "T" }, id: "7" }],
  ["without a mask field, the whole request", "plainAll", "/plain", { id: "7" }, { id: "7" }],
  ["a text", "text", "/text?book.title=T", "7", { id: "7", book: { title: "T" } }],
  ["no body", "bare", "/bare?id=7", {}, { id: "7" }],
  ["two that could be the resource", "two", "/two", { book: { title: "T" } }, { book: { title: "T" } }],
  ["a mask of a POST", "post", "/post?updateMask=title", { title: "T" }, { book: { title: "T" }, updateMask: "title" }],
  ["a mask in the body of a POST", "postAll", "/all", { updateMask: "title" }, { updateMask: "title" }],
  ["a mask of a GET", "get", "/get?updateMask=title&book.title=x", {}, { updateMask: "title", book: { title: "x" } }],
])("%s", (_, id, target, body, result) => {
  expect(read(id, target, body)).toEqual(result);
});
