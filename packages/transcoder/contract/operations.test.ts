/** Annotations that can't be served are refused at the start, in words that lead to the place. */
import { describe, expect, test } from "vitest";
import { compileLibrary, compileProtos, serviceOf } from "../fixtures/compile.ts";
import { operationsOf } from "./operations.ts";

test("the operations of a service, in the order of its contract", () => {
  const operations = operationsOf(serviceOf(compileLibrary(), "foreign.library.v1.LibraryService"));
  expect(operations.map(({ id, verb, path, successStatus }) => [id, verb, path, successStatus])).toEqual([
    ["listBooks", "GET", "/shelves/{shelf}/books", 200],
    ["listBooks2", "GET", "/books", 200],
    ["getBook", "GET", "/books/{isbn}", 200],
    ["addBook", "POST", "/shelves/{shelf}/books", 201],
    ["changeBook", "PUT", "/books/{isbn}", 200],
    ["changeBookPatch", "PATCH", "/books/{isbn}", 200],
    ["touchBook", "PATCH", "/notes/{isbn}", 200],
    ["catalogue", "PUT", "/cards/{isbn}", 200],
    ["stamp", "POST", "/books/{isbn}/stamps/{by}", 204],
    ["sort", "POST", "/sort", 200],
  ]);
});

test("bindings with one verb have ids of their own, and {field=*} is {field}", () => {
  const service = serviceOf(
    compileProtos({
      "many.proto": `syntax = "proto3";
        package many.v1;
        import "google/api/annotations.proto";
        import "google/protobuf/field_mask.proto";
        message Ask { int64 id = 1; }
        message Change { int64 id = 1; Ask ask = 2; google.protobuf.FieldMask update_mask = 3; }
        service Many {
          rpc Get(Ask) returns (Ask) {
            option (google.api.http) = {
              get: "/a/{id=*}"
              additional_bindings: {get: "/b"}
              additional_bindings: {get: "/c/{id}"}
              additional_bindings: {delete: "/a/{id}"}
            };
          }
          rpc Get2(Ask) returns (Ask) { option (google.api.http) = {get: "/d"}; }
          rpc UpdateAsk(Change) returns (Ask) {
            option (google.api.http) = {
              patch: "/a/{id}"
              body: "ask"
              additional_bindings: {put: "/a/{id}" body: "ask"}
              additional_bindings: {patch: "/b/{id}" body: "ask"}
            };
          }
          rpc UpdateAll(Ask) returns (Ask) { option (google.api.http) = {put: "/a" body: "*"}; }
        }`,
    }),
    "many.v1.Many",
  );
  expect(operationsOf(service).map(({ id, path }) => [id, path])).toEqual([
    ["get", "/a/{id}"],
    ["get3", "/b"],
    ["get4", "/c/{id}"],
    ["getDelete", "/a/{id}"],
    ["get2", "/d"],
    ["updateAsk", "/a/{id}"],
    ["replaceAsk", "/a/{id}"],
    ["updateAsk2", "/b/{id}"],
    ["updateAll", "/a"],
  ]);
});

test("what the service assigns is neither a header of requests nor a member", () => {
  const [operation] = operationsOf(
    serviceOf(
      compileProtos({
        "task.proto": `syntax = "proto3";
          package task.v1;
          import "google/api/annotations.proto";
          import "transcoder/v1/annotations.proto";
          message Task {
            string title = 1;
            string etag = 2 [(transcoder.v1.field) = {header: "ETag" output_only: true}];
            string key = 3 [(transcoder.v1.field).header = "Idempotency-Key"];
          }
          service Tasks { rpc Add(Task) returns (Task) { option (google.api.http) = {post: "/tasks" body: "*"}; } }`,
      }),
      "task.v1.Tasks",
    ),
  );
  expect(operation?.requestHeaders.map(({ name }) => name)).toEqual(["Idempotency-Key"]);
  expect(operation?.body).toMatchObject({ fields: [{ name: "title" }] });
  expect(operation?.responseHeaders.map(({ name }) => name)).toEqual(["ETag", "Idempotency-Key"]);
});

const wrong: Record<string, [rpc: string, message: RegExp]> = {
  StreamPart: [
    'rpc R(Flat) returns (stream Out) {option (google.api.http) = {get: "/a" response_body: "parts"}; option (transcoder.v1.stream).id = "";}',
    /response_body and the option stream both say/,
  ],
  StreamStatus: [
    'rpc R(Flat) returns (stream Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.operation).success_status = 201;}',
    /the status of a stream is 200/,
  ],
  StreamOfStreams: [
    'rpc R(stream Flat) returns (stream Out) {option (google.api.http) = {post: "/a" body: "*"}; option (transcoder.v1.stream).id = "";}',
    /the option stream is for an RPC that answers one request/,
  ],
  StreamId: [
    'rpc R(Flat) returns (stream Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.stream).id = "parts";}',
    /id names "parts", which is no string field there/,
  ],
  StreamData: [
    'rpc R(Flat) returns (stream Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.stream).data = "x";}',
    /data names "x", which is no field and no oneof/,
  ],
  Clamped: [
    'rpc R(Limited) returns (Out) {option (google.api.http) = {get: "/a"};}',
    /R: q is clamped, which only an integer can be/,
  ],
  StreamList: [
    'rpc R(Flat) returns (stream Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.stream).data = "parts";}',
    /data needs a message, which parts is not/,
  ],
  StreamEvent: [
    'rpc R(Flat) returns (stream Holding) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.stream) = {data: "part" event: "id"};}',
    /event of Part names "id", which is no string field there/,
  ],
  StreamResume: [
    'rpc R(Flat) returns (stream Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.stream).resume = "id";}',
    /resume names "id", which is no string field there/,
  ],
  UnknownParam: [
    'rpc R(In) returns (Out) {option (google.api.http) = {get: "/a/{nothing}"};}',
    /R: the path "\/a\/\{nothing\}" has a variable that is no field: nothing is no field of wrong.v1.In/,
  ],
  MessageParam: ['rpc R(In) returns (Out) {option (google.api.http) = {get: "/a/{part}"};}', /must be a scalar/],
  NoSlash: ['rpc R(In) returns (Out) {option (google.api.http) = {get: "a"};}', /must start with a slash/],
  CustomKind: [
    'rpc R(In) returns (Out) {option (google.api.http) = {custom: {kind: "FETCH" path: "/a"}};}',
    /R: its HTTP rule has the verb "FETCH"; there are \*, .*GET/,
  ],
  UnknownBody: [
    'rpc R(In) returns (Out) {option (google.api.http) = {post: "/a" body: "nothing"};}',
    /body names "nothing"/,
  ],
  BodyInPath: ['rpc R(In) returns (Out) {option (google.api.http) = {post: "/a/{id}" body: "id"};}', /body names "id"/],
  UnknownAnswer: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a" response_body: "x"};}',
    /response_body names/,
  ],
  EmptyMask: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {post: "/a" body: "*"}; option (transcoder.v1.operation).accepts_empty_mask = true;}',
    /R: accepts_empty_mask needs an update_mask in the request/,
  ],
  ParamTwice: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a/{id}/b/{id}"};}',
    /R: the path "\/a\/\{id\}\/b\/\{id\}" has \{id\} twice/,
  ],
  NestedBindings: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a" additional_bindings: {get: "/b" additional_bindings: {get: "/c"}}};}',
    /R: additional bindings can't have bindings/,
  ],
  Status: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.operation).success_status = 404;}',
    /R: success_status can't be 404/,
  ],
  ResetStatus: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.operation).success_status = 205;}',
    /R: success_status can't be 205/,
  ],
  RelativeLocation: [
    'rpc R(Flat) returns (Flat) {option (google.api.http) = {post: "/a"}; option (transcoder.v1.operation).location = "a/{id}";}',
    /R: the path "a\/\{id\}" must start with a slash/,
  ],
  HeaderName: [
    'rpc R(Spaced) returns (Out) {option (google.api.http) = {get: "/a"};}',
    /R: key can't be the header "X Key"/,
  ],
  FramingHeader: [
    'rpc R(Flat) returns (Framing) {option (google.api.http) = {get: "/a"};}',
    /R: key can't be the header "Content-Length"/,
  ],
  ListLocation: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a" response_body: "parts"}; option (transcoder.v1.operation).location = "/a/{id}";}',
    /location needs/,
  ],
  IdFilterOfNothing: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a" response_body: "parts"}; option (transcoder.v1.operation).id_filter = "x";}',
    /id_filter names "x", which is no free field/,
  ],
  SingleIdFilter: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a" response_body: "parts"}; option (transcoder.v1.operation).id_filter = "id";}',
    /id_filter needs a GET of a list of messages, and a repeated parameter/,
  ],
  ChoiceOfHeaders: [
    'rpc R(Headers) returns (Out) {option (google.api.http) = {get: "/a"};}',
    /R: key can't be a header/,
  ],
  ChoiceOfAnswerHeaders: [
    'rpc R(Flat) returns (Headers) {option (google.api.http) = {get: "/a"};}',
    /R: key can't be a header/,
  ],
  SunsetFirst: [
    'rpc R(Flat) returns (Out) {option (google.api.http) = {get: "/a"}; option (transcoder.v1.operation).deprecation = {deprecated_at: "2021-01-01T00:00:00Z" sunset_at: "2020-01-01T00:00:00Z"};}',
    /a sunset that is not before/,
  ],
};

describe("refused", () => {
  const services = Object.entries(wrong).map(([name, [rpc]]) => `service ${name} {${rpc}}`);
  const registry = compileProtos({
    "wrong.proto": `syntax = "proto3";
      package wrong.v1;
      import "google/api/annotations.proto";
      import "google/protobuf/field_mask.proto";
      import "transcoder/v1/annotations.proto";
      message Part { int64 id = 1; }
      message Holding { Part part = 1; }
      message In { int64 id = 1; Part part = 2; }
      message Flat { int64 id = 1; }
      message Headers { oneof it { string key = 1 [(transcoder.v1.field).header = "X-Key"]; int64 id = 2; } }
      message Spaced { string key = 1 [(transcoder.v1.field).header = "X Key"]; }
      message Framing { string key = 1 [(transcoder.v1.field).header = "Content-Length"]; }
      message Limited { string q = 1 [(transcoder.v1.field).clamped = true]; }
      message Out { repeated Part parts = 1; }
      ${services.join("\n")}`,
  });
  test.each(Object.entries(wrong))("%s", (name, [, message]) => {
    expect(() => operationsOf(serviceOf(registry, `wrong.v1.${name}`))).toThrow(message);
  });
});
