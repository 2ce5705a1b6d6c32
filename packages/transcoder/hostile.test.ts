/** Input that is made to cost much, or to be misread: by anybody's contract, over a real server. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { AnySchema, anyPack, EmptySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { wildcardNames } from "./contract/shown-path.ts";
import { parseTemplate } from "./contract/template.ts";
import { filesBelow } from "./descriptors.ts";
import { compileProtos, serviceOf } from "./fixtures/compile.ts";
import { serve } from "./fixtures/server.ts";
import { DebugInfoSchema } from "./gen/google/rpc/error_details_pb.ts";
import type { TranscoderOptions } from "./index.ts";

const registry = compileProtos({
  "hostile.proto": `syntax = "proto3";
    package hostile.v1;
    import "google/api/annotations.proto";
    import "google/protobuf/any.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    message Book { string name = 1; string title = 2; }
    message Note {
      google.protobuf.Any any = 1;
      google.protobuf.Value value = 2;
      oneof subject { Book book = 3; string other = 4; }
      Note note = 5;
      google.protobuf.Struct data = 6;
      google.protobuf.Timestamp at = 7;
      google.protobuf.Int32Value weight = 8;
      map<string, google.protobuf.Int32Value> weights = 9;
    }
    service Notes {
      rpc Take(Note) returns (Note) { option (google.api.http) = {post: "/notes" body: "*"}; }
      rpc Put(Note) returns (Note) { option (google.api.http) = {put: "/notes/{book.name}" body: "*"}; }
      rpc Drop(Book) returns (Book) { option (google.api.http) = {delete: "/notes/{name}"}; }
      rpc Send(stream Book) returns (Book) { option (google.api.http) = {post: "/books" body: "*"}; }
    }`,
});
const service = serviceOf(registry, "hostile.v1.Notes");

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

const echo = { take: (note: object) => note, put: (note: object) => note, drop: (book: object) => book };
async function start(implementation: object = echo, options: Partial<TranscoderOptions> = {}) {
  server = await serve(service, implementation as never, { codec: "proto3", omitUnpopulated: true, ...options });
}
const post = (body: string) =>
  server.call("/notes", { method: "POST", headers: { "content-type": "application/json" }, body });

test("no more than a hundred messages are within one another, each Any counted", async () => {
  await start();
  const type = '"@type":"type.googleapis.com/google.protobuf.';
  const nested = (depth: number) => `${`{${type}Any","value":`.repeat(depth)}{${type}Empty"}${"}".repeat(depth)}`;
  // The note, the Empty and the Any that holds it are three of them.
  expect((await post(`{"any":${nested(97)}}`)).text).toBe(`{"any":${nested(97)}}`);
  await server.app.close();
  await start(echo, { limits: { jsonDepth: 1000 } });
  expect(await post(`{"any":${nested(98)}}`).then((answer) => answer.record())).toMatchObject({
    status: 400,
    message: expect.stringMatching(/value: is nested too deeply: no more than 100 messages/),
  });
});

test("a Value that no reader of protobuf takes is the caller's fault", async () => {
  await start();
  const nested = (depth: number) => `{"value":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  expect((await post(nested(49))).text).toBe(nested(49));
  expect((await post(`{"value":${"[".repeat(50)}1${"]".repeat(50)}}`)).status).toBe(400);
  expect((await post(`{"data":{"${"k".repeat(5000)}":1e999}}`)).text.length).toBeLessThan(1000);
  expect((await post(nested(50))).record()).toMatchObject({
    status: 400,
    message: expect.stringContaining("is nested too deeply: no more than 100 messages may be within one another"),
  });
});

test("nor is there a way around the limit by messages, lists, maps and Values together", async () => {
  await start(echo, { limits: { jsonDepth: 1000 } });
  const nested = (notes: number, value: string, more = "") =>
    `${`{"note":`.repeat(notes - 1)}{"value":${value}${more}}${"}".repeat(notes - 1)}`;
  const arrays = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  for (const good of [nested(99, "1"), nested(60, arrays(20)), nested(20, `{"a":${arrays(39)}}`)])
    expect((await post(good)).text).toBe(good);
  for (const bad of [nested(100, "1"), nested(61, arrays(20)), nested(20, `{"a":${arrays(40)}}`), nested(101, "1")])
    expect((await post(bad)).record()).toMatchObject({
      status: 400,
      message: expect.stringContaining("is nested too deeply"),
    });
  for (const member of ["data", "at", "weight", "weights"]) {
    const value = { data: "{}", at: '"2020-01-01T00:00:00Z"', weight: "1", weights: '{"a":1}' }[member];
    const note = (notes: number) => `${`{"note":`.repeat(notes - 1)}{"${member}":${value}}${"}".repeat(notes - 1)}`;
    expect([member, (await post(note(99))).text]).toEqual([member, note(99)]);
    expect([member, (await post(note(100))).status]).toEqual([member, 400]);
  }
});

test("an answer that is nested too deeply can't be understood, which the log says", async () => {
  let deep = anyPack(EmptySchema, create(EmptySchema));
  for (let i = 0; i < 100; i++) deep = anyPack(AnySchema, deep);
  const lines: unknown[] = [];
  const log = { warn: ({ err }: { err: Error }) => lines.push(String(err.cause)) };
  const options = { errors: "status", codec: "proto3" } as const;
  server = await serve(service, { take: () => ({ any: deep }) } as never, options, async (app) => {
    app.addHook("onRequest", async (request) => Object.assign(request, { log }));
  });
  expect(await post("{}").then((answer) => answer.record())).toMatchObject({ code: 14 });
  expect(lines).toEqual([expect.stringContaining("the answer has more than 100 messages within one another")]);
});

test("a path and a body may each have a part of the same member of a oneof", async () => {
  await start();
  const put = (body: string) =>
    server.call("/notes/n", { method: "PUT", headers: { "content-type": "application/json" }, body });
  expect((await put('{"book":{"title":"t"}}')).text).toBe('{"book":{"name":"n","title":"t"}}');
  expect((await put('{"other":"t"}')).status).toBe(400);
});

test("what an INTERNAL error tells developers is not told to callers, and its other details are", async () => {
  const details = [{ desc: DebugInfoSchema, value: create(DebugInfoSchema, { detail: "postgres://user:secret@db" }) }];
  const fail = (code: Code) => () => {
    throw new ConnectError("secret", code, undefined, details);
  };
  await start({ take: fail(Code.Internal) }, { errors: "status" });
  expect((await post("{}")).text).not.toContain("secret");
  await server.app.close();
  await start({ take: fail(Code.FailedPrecondition) }, { errors: "status" });
  expect((await post("{}")).text).toContain("postgres://user:secret@db");
});

/** The answer to what is sent on a connection that then stays open and silent. */
async function silence(sent: string): Promise<string> {
  const socket = connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(sent);
  return text(socket);
}

test.each([
  ["without a body of its own", "DELETE /notes/1", 408],
  ["to nowhere", "POST /nowhere", 404],
  ["that is refused by its type", "POST /books", 415],
])("a request %s ends, though another operation takes streams", async (_, line, status) => {
  await start(echo, { limits: { requestMs: 300 } });
  const head = `${line} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n`;
  expect(await silence(head)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
});

test("a contract may import as deep, and have as many wildcards, as it likes", () => {
  let file = { dependencies: [] as object[] };
  for (let i = 0; i < 20_000; i++) file = { dependencies: [file] };
  expect(filesBelow([file as never])).toHaveLength(20_001);
  const names = wildcardNames(
    parseTemplate(`/${Array(5_000).fill("*").join("/")}`, service.method.take?.input as never),
  );
  expect([names[0], names[1], names[4_999]]).toEqual(["segment", "segment2", "segment5000"]);
});
