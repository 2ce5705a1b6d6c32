/** Values of proto3 JSON through a server: whole requests and answers, single fields, and what is wrong on either side. */
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProtos, serviceOf } from "./fixtures/compile.ts";
import { serve } from "./fixtures/server.ts";

const service = serviceOf(
  compileProtos({
    "old.proto": `syntax = "proto2";
      package values.v1;
      import "buf/validate/validate.proto";
      message Old { required string title = 1; optional Old next = 2; }
      enum Mood { MOOD_GOOD = 3; MOOD_BAD = 4; }
      message Presence {
        optional string text = 1; optional int64 number = 2; optional Mood mood = 3; optional bytes data = 4 [default = "x"];
        optional Old old = 5; repeated int32 list = 6; oneof choice { string one = 7; } extensions 100 to 110;
      }
      extend Presence { optional string note = 100; }
      message Ruled { required string title = 1; optional string mail = 2 [(buf.validate.field).string.email = true]; }`,
    "values.proto": `syntax = "proto3";
      package values.v1;
      import "google/api/annotations.proto";
      import "google/protobuf/any.proto";
      import "google/protobuf/duration.proto";
      import "google/protobuf/struct.proto";
      import "google/protobuf/wrappers.proto";
      import "old.proto";
      enum Size { SIZE_UNSPECIFIED = 0; SIZE_LARGE = 1; }
      message Item {
        int64 number = 1; Size size = 2; google.protobuf.Any any = 3; google.protobuf.Duration length = 4;
        google.protobuf.Int64Value many = 5; google.protobuf.Struct data = 6; google.protobuf.ListValue list = 7;
      }
      message Held { Old old = 1; Ruled ruled = 2; }
      message Optional { optional string text = 1; optional google.protobuf.Duration length = 2; }
      message OneMany { google.protobuf.Int64Value many = 1; }
      message OneData { google.protobuf.Struct data = 1; }
      message OneList { google.protobuf.ListValue list = 1; }
      message OneLength { google.protobuf.Duration length = 1; }
      message OneNumber { int64 number = 1; }
      message OneOld { Old old = 1; }
      service Values {
        rpc Echo(Item) returns (Item) { option (google.api.http) = {post: "/item/{size}" body: "*"}; }
        rpc EchoMany(OneMany) returns (OneMany) { option (google.api.http) = {post: "/many" body: "many" response_body: "many"}; }
        rpc EchoData(OneData) returns (OneData) { option (google.api.http) = {post: "/data" body: "data" response_body: "data"}; }
        rpc EchoList(OneList) returns (OneList) { option (google.api.http) = {post: "/list" body: "list" response_body: "list"}; }
        rpc EchoLength(OneLength) returns (OneLength) { option (google.api.http) = {post: "/length" body: "length" response_body: "length"}; }
        rpc EchoNumber(OneNumber) returns (OneNumber) { option (google.api.http) = {post: "/number" body: "number" response_body: "number"}; }
        rpc EchoOld(OneOld) returns (OneOld) { option (google.api.http) = {post: "/old" body: "old" response_body: "old"}; }
        rpc EchoStruct(google.protobuf.Struct) returns (google.protobuf.Struct) { option (google.api.http) = {post: "/struct" body: "*"}; }
        rpc EchoValue(google.protobuf.Value) returns (google.protobuf.Value) { option (google.api.http) = {post: "/value" body: "*"}; }
        rpc EchoLong(google.protobuf.Int64Value) returns (google.protobuf.Int64Value) { option (google.api.http) = {post: "/long" body: "*"}; }
        rpc Hold(Held) returns (Held) { option (google.api.http) = {post: "/held" body: "*"}; }
        rpc EchoPresence(Presence) returns (Presence) { option (google.api.http) = {post: "/presence" body: "*"}; }
        rpc EchoOptional(Optional) returns (Optional) { option (google.api.http) = {post: "/optional" body: "*"}; }
        rpc Fail(Item) returns (Item) { option (google.api.http) = {post: "/fail" body: "*"}; }
      }`,
  }),
  "values.v1.Values",
);

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  const echo = (request: unknown) => request;
  const implementation = {
    echo,
    echoMany: echo,
    echoData: echo,
    echoList: echo,
    echoLength: echo,
    echoNumber: echo,
    echoOld: echo,
    echoStruct: echo,
    echoValue: echo,
    echoLong: echo,
    hold: echo,
    echoPresence: echo,
    echoOptional: echo,
    fail({ number }: { number: bigint }) {
      if (number === 1n) throw new ConnectError("no", Code.NotFound);
      return { any: { typeUrl: "x/no.Such", value: new Uint8Array() } };
    },
  };
  server = await serve(service, implementation as never, { codec: "proto3", omitUnpopulated: true, strict: true });
});
afterAll(() => server.app.close());

const post = (path: string, body: string) =>
  server.call(path, { method: "POST", body, headers: { "content-type": "application/json" } });

test.each([
  ["/item/SIZE_LARGE", '{"number":9007199254740993}', '{"number":"9007199254740993","size":"SIZE_LARGE"}'],
  ["/item/1", '{"many":"7","length":"1s"}', '{"size":"SIZE_LARGE","length":"1s","many":"7"}'],
  [
    "/item/1",
    '{"any":{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"R"}}',
    '{"size":"SIZE_LARGE","any":{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"R"}}',
  ],
  ["/many", "9007199254740993", '"9007199254740993"'],
  ["/data", '{"a":[null]}', '{"a":[null]}'],
  ["/list", "[1,{}]", "[1,{}]"],
  ["/length", '"1.5s"', '"1.500s"'],
  ["/number", "0", '"0"'],
  ["/struct", '{"a":{"b":1}}', '{"a":{"b":1}}'],
  ["/value", "null", "null"],
  ["/value", '["x"]', '["x"]'],
  ["/long", '"9223372036854775807"', '"9223372036854775807"'],
  ["/held", '{"old":{"title":"","next":{"title":"x"}}}', '{"old":{"title":"","next":{"title":"x"}}}'],
])("%s takes %s", async (path, body, written) => {
  const { status, text } = await post(path, body);
  expect([status, text]).toEqual([200, written]);
});

test.each([
  ["/item/SIZE_SMALL", "{}", "size: must be one of SIZE_UNSPECIFIED, SIZE_LARGE"],
  ["/item/1", '{"number":1,"number":2}', 'The body names the member "number" twice.'],
  ["/item/1", '{"colour":1}', "colour: is not known here"],
  ["/item/1", '{"any":{"@type":"x/no.Such"}}', "any.@type: names a type that is not known here: x/no.Such"],
  ["/many", "null", "The body must not be null"],
  ["/long", '"x"', "The body must be an integer"],
  ["/struct", "[]", "The body must be an object"],
  ["/held", '{"old":{"next":{"title":"x"}}}', "old.title: is required"],
  ["/held", '{"old":{"title":"x","next":{}}}', "old.next.title: is required"],
  ["/held", '{"ruled":{"mail":"a@b.example"}}', "ruled.title: is required"],
  ["/old", "{}", "title: is required"],
])("%s refuses %s", async (path, body, message) => {
  const { status, text } = await post(path, body);
  expect([status, JSON.parse(text).message]).toEqual([400, expect.stringContaining(message)]);
});

test("an answer that JSON can't tell is the service's fault", async () => {
  const { status, text } = await post("/fail", "{}");
  expect(status).toBeGreaterThanOrEqual(500);
  expect(text).not.toContain("no.Such");
  expect((await post("/fail", '{"number":"1"}')).status).toBe(404);
});

test("what proto2 has not set is null, as grpc-gateway writes it; what proto3 calls optional is absent", async () => {
  await server.app.close();
  const echo = (request: unknown) => request;
  server = await serve(service, { echoPresence: echo, echoOptional: echo } as never, { codec: "proto3" });
  const unset = { text: null, number: null, mood: null, data: null, old: null, list: [] };
  expect((await post("/presence", "{}")).record()).toEqual(unset);
  expect((await post("/presence", JSON.stringify(unset).replace("[]", "null"))).record()).toEqual(unset);
  const zeros = { text: "", number: "0", mood: "MOOD_GOOD", data: "", one: "", "[values.v1.note]": "" };
  expect((await post("/presence", JSON.stringify(zeros))).record()).toEqual({ ...unset, ...zeros });
  expect((await post("/optional", "{}")).text).toBe("{}");
  await server.app.close();
  for (const options of [{ codec: "proto3", omitUnpopulated: true }, { codec: "exact" }] as const) {
    server = await serve(service, { echoPresence: echo } as never, options);
    expect((await post("/presence", "{}")).text).toBe(options.codec === "exact" ? '{"list":[]}' : "{}");
    await server.app.close();
  }
});

test("a patch can't name an extension, so it is refused", async () => {
  const registry = compileProtos({
    "patched.proto": `syntax = "proto2";
      package patched.v1;
      import "google/api/annotations.proto";
      import "google/protobuf/field_mask.proto";
      message Book { optional string name = 1; extensions 100 to 110; }
      extend Book { optional int32 shelf = 100; }
      message Change { optional Book book = 1; optional google.protobuf.FieldMask update_mask = 2; }
      service Books { rpc Update(Change) returns (Book) { option (google.api.http) = {patch: "/book" body: "book"}; } }`,
  });
  const update = ({ book }: { book: object }) => book;
  const server = await serve(serviceOf(registry, "patched.v1.Books"), { update } as never, { codec: "proto3" });
  const headers = { "content-type": "application/json" };
  const patch = (body: string) => server.call("/book", { method: "PATCH", headers, body });
  expect((await patch('{"name":"x"}')).status).toBe(200);
  expect((await patch('{"name":"x","[patched.v1.shelf]":5}')).record()).toMatchObject({
    status: 400,
    message: expect.stringContaining("[patched.v1.shelf]"),
  });
  await server.app.close();
});
