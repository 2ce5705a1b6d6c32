/** What unrouted.ts reports: operations that routes of the host's keep all requests from. */
import { createRouterTransport } from "@connectrpc/connect";
import { type FastifyInstance, fastify } from "fastify";
import { afterEach, expect, test } from "vitest";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { serverOptions, type TranscoderOptions, transcoder } from "../index.ts";

const desc = serviceOf(
  compileProtos({
    "hidden.proto": `syntax = "proto3";
      package hidden.v1;
      import "google/api/annotations.proto";
      message Book { string name = 1; }
      service Books {
        rpc List(Book) returns (Book) { option (google.api.http) = {get: "/v1/books"}; }
        rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/books/{name}"}; }
        rpc Add(Book) returns (Book) { option (google.api.http) = {post: "/v1/books" body: "*"}; }
        rpc Lend(Book) returns (Book) { option (google.api.http) = {post: "/v1/books:lend" body: "*"}; }
        rpc Any(Book) returns (Book) { option (google.api.http) = {get: "/v1/files/{name=**}"}; }
        rpc Link(Book) returns (Book) { option (google.api.http) = {custom: {kind: "LINK" path: "/v1/books"}}; }
      }`,
  }),
  "hidden.v1.Books",
);

type Register = (app: FastifyInstance) => void;
let app: FastifyInstance;
afterEach(() => app.close());

async function logged(before: Register, after: Register, more: Partial<TranscoderOptions> = {}): Promise<string[]> {
  const lines: string[] = [];
  const options = { services: [{ desc, transport: createRouterTransport(() => {}) }], ...more };
  app = fastify({
    ...serverOptions(options),
    logger: { level: "error", stream: { write: (line: string) => void lines.push(JSON.parse(line).msg) } },
  });
  before(app);
  await app.register(transcoder, options);
  after(app);
  await app.ready();
  return lines;
}

const nothing = () => {};
const own = async () => "own";

test.each<[string, Register, string[]]>([
  ["its own path", (app) => app.get("/v1/books", own), ["List"]],
  ["a parameter", (app) => app.get("/v1/books/:id", own), ["Get"]],
  ["all that follows", (app) => app.get("/v1/*", own), ["List", "Get", "Any"]],
  ["every method", (app) => app.all("/v1/books", own), ["List", "Add", "Link"]],
  ["a custom verb", (app) => app.post("/v1/books::lend", own), ["Lend"]],
  [
    "a plugin with a prefix",
    (app) => app.register(async (scope) => scope.get("/books", own), { prefix: "/v1" }),
    ["List"],
  ],
  ["what follows, but not the path that ** also takes", (app) => app.get("/v1/files/*", own), []],
  ["another method", (app) => app.put("/v1/books", own), []],
  ["one path of many", (app) => app.get("/v1/books/new", own), []],
  ["some parameters", (app) => app.get("/v1/books/:id(^\\d+)", own), []],
  ["some hosts", (app) => app.get("/v1/books", { constraints: { host: "a.example" } }, own), []],
  ["what nothing else takes", (app) => app.get("/*", own), []],
])("a route behind the plugin that takes %s", async (_what, register, hidden) => {
  const lines = await logged(nothing, register);
  expect(lines).toHaveLength(hidden.length);
  for (const [i, name] of hidden.entries())
    expect(lines[i]).toMatch(new RegExp(`^rpc hidden.v1.Books.${name}: no request`));
});

test("what is said names both, and the base path", async () => {
  expect(await logged(nothing, (app) => app.get("/api/v1/books/:id", own), { basePath: "/api" })).toEqual([
    "rpc hidden.v1.Books.Get: no request reaches GET /api/v1/books/{name}, because the server's own route /api/v1/books/:id goes first",
  ]);
});

test("a route before the plugin, if it has the operation's own path", async () => {
  const before: Register = (app) => app.get("/v1/books", own).get("/v1/books/:id", own).post("/v1/books::lend", own);
  const lines = await logged(before, nothing);
  expect(lines.map((line) => line.split(":")[0])).toEqual([
    "rpc hidden.v1.Books.List",
    "rpc hidden.v1.Books.Get",
    "rpc hidden.v1.Books.Lend",
  ]);
});

test("with strict the server does not start", async () => {
  await expect(logged(nothing, (app) => app.get("/v1/books", own), { strict: true })).rejects.toThrow(
    "no request reaches GET /v1/books",
  );
});

test("nor where the document hides one", async () => {
  const openApi = { title: "Books", path: "/v1/books" };
  expect(await logged(nothing, nothing, { openApi })).toEqual([expect.stringContaining("Books.List: no request")]);
});
