/** Parameters of a query, and which of them fill what of a request. The cases are those that other transcoders are tested with. */
import { toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { createCodec } from "../contract/codec.ts";
import { jsonPath } from "../contract/field-path.ts";
import type { Operation } from "../contract/operation.ts";
import { operationsOf } from "../contract/operations.ts";
import { listParameters } from "../contract/query-parameters.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { prepareValidation } from "../validation/validate.ts";
import { type InputOptions, inputReader } from "./input.ts";

const registry = compileProtos({
  "query.proto": `syntax = "proto3";
    package query.v1;
    import "buf/validate/validate.proto";
    import "google/api/annotations.proto";
    import "google/protobuf/duration.proto";
    import "google/protobuf/field_mask.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    import "transcoder/v1/annotations.proto";
    enum Kind { KIND_UNSPECIFIED = 0; KIND_NOVEL = 1; KIND_ATLAS = 2; }
    message Name { string given_name = 1 [(buf.validate.field).string.max_len = 5]; repeated string nick_names = 2; }
    message Author { Name name = 1; int32 born = 2; Author teacher = 3; string id = 4 [(transcoder.v1.field).output_only = true]; }
    message Book { Author author = 1; string title = 2; map<string, string> labels = 3; repeated Author others = 4; }
    message Find {
      string id = 1;
      Book book = 2;
      repeated int64 pages = 3;
      Kind kind = 4;
      repeated Kind kinds = 5;
      google.protobuf.Timestamp at = 6;
      google.protobuf.Duration for = 7;
      google.protobuf.FieldMask read_mask = 8;
      google.protobuf.Int64Value weight = 9;
      google.protobuf.StringValue note = 10;
      google.protobuf.BoolValue lent = 11;
      repeated google.protobuf.Timestamp days = 12;
      map<string, int64> counts = 13;
      map<int32, Kind> shelves = 14;
      map<string, Book> books = 15;
      google.protobuf.Struct struct = 16;
      google.protobuf.Value value = 17;
      repeated Book list = 18;
      oneof choice { string by_name = 19; Author by_author = 20; google.protobuf.Duration by_age = 21; Book by_book = 22; }
      Find again = 23;
      bytes data = 24;
      double price = 25;
      bool is_new = 26;
      map<bool, string> flags = 27;
    }
    message Answer {}
    message W0 { ${[0, 1, 2, 3].map((i) => `W1 f${i} = ${i + 1};`).join(" ")} }
    ${Array.from({ length: 30 }, (_, n) => `message W${n + 1} { ${[0, 1, 2, 3].map((i) => `W${n + 2} f${i} = ${i + 1};`).join(" ")} }`).join("\n")}
    message W31 { string end = 1; }
    service Queries {
      rpc Find(query.v1.Find) returns (Answer) { option (google.api.http) = {get: "/find"}; }
      rpc Get(query.v1.Find) returns (Answer) { option (google.api.http) = {get: "/get/{id}/{book.author.name.given_name}"}; }
      rpc Put(query.v1.Find) returns (Answer) { option (google.api.http) = {put: "/put/{id}" body: "book"}; }
      rpc Send(query.v1.Find) returns (Answer) { option (google.api.http) = {post: "/send/{id}" body: "*"}; }
      rpc Wide(W0) returns (Answer) { option (google.api.http) = {get: "/wide"}; }
    }`,
});
const operations = operationsOf(serviceOf(registry, "query.v1.Queries"));
const named = (id: string) => operations.find((one) => one.id === id) as Operation;
await prepareValidation(operations.map(({ method }) => method.input));

const PROTO3: InputOptions = { basePath: "", maxDepth: 16, codec: createCodec({}) };

function read(target: string, { body = "{}", strict = true, ...more }: Record<string, unknown> = {}, options = PROTO3) {
  const operation = named(target.split(/[/?]/)[1] as string);
  const reader = inputReader(operation, { ...options, ...more });
  const bytes = new TextEncoder().encode(body as string);
  const message = reader({ target, headers: {}, body: bytes, strict: strict as boolean });
  return toJson(operation.method.input, message, { registry });
}

const problem = (...given: Parameters<typeof read>) => {
  try {
    return read(...given);
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
};

describe("read", () => {
  test.each([
    ["id=a", { id: "a" }],
    ["book.title=x&book.author.born=5", { book: { title: "x", author: { born: 5 } } }],
    ["book.author.name.givenName=Ann", { book: { author: { name: { givenName: "Ann" } } } }],
    ["book.author.name.given_name=Ann", { book: { author: { name: { givenName: "Ann" } } } }],
    [
      "book.author.name.nick_names=a&book.author.name.nick_names=b,c",
      { book: { author: { name: { nickNames: ["a", "b,c"] } } } },
    ],
    ["pages=1&pages=2,3", { pages: ["1", "2", "3"] }],
    ["kind=KIND_NOVEL", { kind: "KIND_NOVEL" }],
    ["kind=2", { kind: "KIND_ATLAS" }],
    ["kinds=KIND_NOVEL&kinds=2", { kinds: ["KIND_NOVEL", "KIND_ATLAS"] }],
    ["at=2027-01-02T03:04:05Z", { at: "2027-01-02T03:04:05Z" }],
    ["for=1.5s", { for: "1.500s" }],
    ["readMask=book.title,kind", { readMask: "book.title,kind" }],
    ["read_mask=book.title,is_new", { readMask: "book.title,isNew" }],
    ["weight=9007199254740993&note=&lent=false", { weight: "9007199254740993", note: "", lent: false }],
    ["days=2027-01-02T00:00:00Z&days=2028-01-02T00:00:00Z", { days: ["2027-01-02T00:00:00Z", "2028-01-02T00:00:00Z"] }],
    ["counts[a]=1&counts[b.c]=2", { counts: { a: "1", "b.c": "2" } }],
    ["counts%5Ba%5D=1", { counts: { a: "1" } }],
    ["counts[]=1", { counts: { "": "1" } }],
    ["counts[[x]]=1", { counts: { "[x]": "1" } }],
    ["book.labels[__proto__]=y", { book: { labels: JSON.parse('{"__proto__":"y"}') } }],
    ["shelves[3]=KIND_NOVEL&flags[true]=x", { shelves: { 3: "KIND_NOVEL" }, flags: { true: "x" } }],
    ["byAuthor.born=3&byAuthor.name.givenName=A", { byAuthor: { born: 3, name: { givenName: "A" } } }],
    ["byAge=1s", { byAge: "1s" }],
    ["data=-_8", { data: "+/8=" }],
    ["price=NaN", { price: "NaN" }],
    ["isNew=true&id=", { isNew: true }],
    ["", {}],
    ["&&id=a&", { id: "a" }],
  ])("%s", (query, json) => {
    expect(problem(`/find?${query}`)).toEqual(json);
  });
});

describe("refused", () => {
  const unknown = (name: string) => `UNKNOWN_FIELD ${name}: is not known here`;
  test.each([
    ["other=1", unknown("other")],
    ["book=x", unknown("book")],
    ["book.other=x", unknown("book.other")],
    ["book..title=x", unknown("book..title")],
    [".title=x", unknown(".title")],
    ["book.title.x=x", unknown("book.title.x")],
    ["book.title[0]=x", unknown("book.title[0]")],
    ["pages[0]=1", unknown("pages[0]")],
    ["book.author.id=x", unknown("book.author.id")],
    ["book.author.teacher.born=1", unknown("book.author.teacher.born")],
    ["again.id=x", unknown("again.id")],
    ["book.others.born=1", unknown("book.others.born")],
    ["list.title=x", unknown("list.title")],
    ["books[a].title=x", unknown("books[a].title")],
    ["books[a]=x", "UNKNOWN_FIELD books[a]: is not known here"],
    ["struct.fields[a]=x", unknown("struct.fields[a]")],
    ["struct=x", unknown("struct")],
    ["value.stringValue=x", unknown("value.stringValue")],
    ["at.seconds=1", unknown("at.seconds")],
    ["constructor.name=x", unknown("constructor.name")],
    ["counts=1", "INVALID_QUERY counts: must have a key in brackets: counts[key]=value"],
    ["counts[a]=x", "INVALID_QUERY counts[a]: must be an integer"],
    ["counts[a]=1&counts[a]=2", "INVALID_QUERY counts[a]: must not be given twice"],
    ["shelves[0]=1&shelves[-0]=1", "INVALID_QUERY shelves[-0]: must not be given twice"],
    ["shelves[x]=1", "INVALID_QUERY shelves[x]: must be an integer"],
    ["flags[yes]=1", "INVALID_QUERY flags[yes]: must be true or false"],
    ["kind=KIND_OTHER", expect.stringMatching(/^INVALID_QUERY kind: must be/)],
    ["at=yesterday", expect.stringMatching(/^INVALID_QUERY at: must be a date and time/)],
    ["for=1h", expect.stringMatching(/^INVALID_QUERY for: must be seconds/)],
    ["weight=x", "INVALID_QUERY weight: must be an integer"],
    ["pages=", "INVALID_QUERY pages: must be an integer"],
    ["book.title=a&book.title=b", "INVALID_QUERY book.title: must not be given twice"],
    [
      "book.author.name.givenName=a&book.author.name.given_name=a",
      "INVALID_QUERY book.author.name.given_name: is another name of book.author.name.givenName, which is given too",
    ],
    [
      "byName=a&byAuthor.born=1",
      "INVALID_QUERY byAuthor.born: must not be given together with another of byName, byAuthor, byAge, byBook",
    ],
    [
      "byAuthor.born=1&byBook.title=x",
      "INVALID_QUERY byBook.title: must not be given together with another of byName, byAuthor, byAge, byBook",
    ],
    ["book.author.name.givenName=toolong", "INVALID_QUERY book.author.name.givenName: must be at most 5 characters"],
  ])("%s", (query, message) => {
    expect(problem(`/find?${query}`)).toEqual(message);
  });

  test("names in the contract, where only JSON names are known", () => {
    expect(problem("/find?book.author.name.given_name=a", { jsonNamesOnly: true })).toBe(
      unknown("book.author.name.given_name"),
    );
    expect(read("/find?book.author.name.givenName=a", { jsonNamesOnly: true })).toHaveProperty("book");
  });

  test("or ignored, where the caller wants so", () => {
    expect(read("/find?book=x&again.id=x&book.other=1&id=a", { strict: false })).toEqual({ id: "a" });
  });
});

describe("fields given twice", () => {
  const inPath = { id: "a", book: { author: { name: { givenName: "Ann" } } } };
  test.each([
    ["/get/a/Ann?id=b", inPath],
    ["/get/a/Ann?book.author.name.given_name=Eve", inPath],
    ["/get/a/Ann?book.author.born=3", { id: "a", book: { author: { name: { givenName: "Ann" }, born: 3 } } }],
    ["/get/a/toolong", "INVALID_ID book.author.name.givenName: must be at most 5 characters"],
  ])("the path counts more than the query: %s", (target, result) => {
    expect(problem(target)).toEqual(result);
  });

  test.each([
    [
      "/put/a?kind=1&at=2027-01-02T00:00:00Z",
      '{"title":"T"}',
      { id: "a", kind: "KIND_NOVEL", at: "2027-01-02T00:00:00Z", book: { title: "T" } },
    ],
    ["/put/a?book.title=x", "{}", "UNKNOWN_FIELD book.title: is not known here"],
    ["/put/a?id=b", "{}", { id: "a", book: {} }],
    ["/send/a", '{"kind":1}', { id: "a", kind: "KIND_NOVEL" }],
    ["/send/a", '{"id":"a"}', { id: "a" }],
    [
      "/send/a",
      '{"id":"b"}',
      "VALIDATION_FAILED id: differs from the value in the path: leave it out, or say the same",
    ],
    ["/send/a?kind=1", "{}", "UNKNOWN_FIELD kind: is not known here"],
    ["/send/a?id=b", "{}", { id: "a" }],
  ])("parameters beside a body: %s %s", (target, body, result) => {
    expect(problem(target, { body })).toEqual(result);
  });

  test("what is unknown may be ignored, but never that path and body differ", () => {
    const given = { strict: false, body: '{"id":"b","unknown":1}' };
    expect(problem("/send/a", given)).toContain("id: differs from the value in the path");
    expect(problem("/send/a?id=c&unknown=1", { ...given, body: '{"id":"a","unknown":1}' })).toEqual({ id: "a" });
  });

  test("with pathFieldsFromPathOnly they are unknown elsewhere: ignored, or an error under strict handling", () => {
    const pathFieldsFromPathOnly = true;
    expect(read("/send/a?id=c", { body: '{"id":"b"}', strict: false, pathFieldsFromPathOnly })).toEqual({ id: "a" });
    expect(problem("/send/a?id=a", { pathFieldsFromPathOnly })).toBe("UNKNOWN_FIELD id: is not known here");
    expect(problem("/send/a", { body: '{"id":"a"}', pathFieldsFromPathOnly })).toBe(
      "UNKNOWN_FIELD id: is not known here",
    );
  });
});

describe("the list of parameters", () => {
  test("has the fields of messages, but not of messages within themselves, and not what a query can't fill", () => {
    const names = listParameters(named("find")).paths.map(jsonPath);
    expect(names).toContain("book.author.name.givenName");
    expect(names).toContain("book.labels");
    expect(names.filter((name) => /teacher|again|struct|value|list|books|author\.id|^book$/.test(name))).toEqual([]);
    expect(listParameters(named("get")).paths.map(jsonPath)).not.toContain("book.author.name.givenName");
  });

  test("ends, however many there are: of 4 to the power of 32 none is reached here", () => {
    const { paths, isCut } = listParameters(named("wide"));
    expect(paths.length).toBeLessThanOrEqual(500);
    expect([isCut, listParameters(named("find")).isCut]).toEqual([true, false]);
    const way = Array(31).fill("f3").join(".");
    expect(read(`/wide?${way}.end=x`)).toHaveProperty(way.replace(/$/, ".end"), "x");
  });
});
