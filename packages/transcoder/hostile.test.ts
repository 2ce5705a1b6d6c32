/** Input that is made to cost much, or to be misread: by anybody's contract, over a real server. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { filesBelow } from "./contract/files.ts";
import { wildcardNames } from "./contract/shown-path.ts";
import { parseTemplate } from "./contract/template.ts";
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
    message Book { string name = 1; string title = 2; }
    message Note {
      google.protobuf.Any any = 1;
      google.protobuf.Value value = 2;
      oneof subject { Book book = 3; string other = 4; }
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

test("an Any is in ten others at most, for each copies all that is in it", async () => {
  await start();
  const type = '"@type":"type.googleapis.com/google.protobuf.';
  const nested = (depth: number) => `${`{${type}Any","value":`.repeat(depth)}{${type}Empty"}${"}".repeat(depth)}`;
  expect((await post(`{"any":${nested(9)}}`)).status).toBe(200);
  expect(await post(`{"any":${nested(10)}}`).then((answer) => answer.record())).toMatchObject({
    status: 400,
    message: expect.stringContaining("must not be within 10 others of its kind"),
  });
});

test("a Value that no reader of protobuf takes is the caller's fault", async () => {
  await start();
  const nested = (depth: number) => `{"value":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  expect((await post(nested(40))).text).toBe(nested(40));
  expect((await post(nested(41))).record()).toMatchObject({
    status: 400,
    message: expect.stringContaining("must not be nested deeper than 40"),
  });
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
