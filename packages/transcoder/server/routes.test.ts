/** Requests for operations of any path and verb, on a server that has routes of its own. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { createRouterTransport } from "@connectrpc/connect";
import { type FastifyInstance, fastify } from "fastify";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { conflictsOf, operationsOf } from "../contract/operations.ts";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { records, serve } from "../fixtures/server.ts";
import { transcoder } from "../index.ts";

const rpc = (name: string, rule: string, input = "Asked") =>
  `rpc ${name}(${input}) returns (Told) { option (google.api.http) = {${rule}}; }`;
const registry = compileProtos({
  "ways.proto": `syntax = "proto3";
    package ways.v1;
    import "google/api/annotations.proto";
    import "google/protobuf/duration.proto";
    enum Kind { KIND_UNSPECIFIED = 0; KIND_OLD = 1; }
    message Asked {
      string name = 1; int64 number = 2; Kind kind = 3;
      oneof by { string author = 5; int64 isbn = 6; }
    }
    message Book { string name = 1; string title = 2; }
    message Changed { Book book = 1; int64 number = 2; }
    message Aged { google.protobuf.Duration age = 1; }
    message Told {
      string rpc = 1; string asked = 2;
      int64 count = 3; Kind kind = 4; map<string, int64> counts = 5; repeated string words = 6;
    }
    service Ways {
      ${rpc("Root", 'get: "/"')}
      ${rpc("Get", 'get: "/v1/{name=shelves/*/books/*}"')}
      ${rpc("Lend", 'post: "/v1/{name=shelves/*/books/*}:lend"')}
      ${rpc("Note", 'post: "/v1/{name=shelves/*/books/*}"')}
      ${rpc("File", 'get: "/files/{name=**}"')}
      ${rpc("Within", 'get: "/trees/{name=**}/of/{author}"')}
      ${rpc(
        "One",
        `get: "/numbers/{number}"
        additional_bindings: {get: "/kinds/{kind}"}
        additional_bindings: {get: "/authors/{author}"}
        additional_bindings: {get: "/names/{name}"}`,
      )}
      ${rpc("Age", 'get: "/ages/{age}"', "Aged")}
      ${rpc("Change", 'put: "/v1/{book.name=books/*}" body: "book"', "Changed")}
      ${rpc("Replace", 'put: "/v2/{book.name}" body: "*"', "Changed")}
      ${rpc("Search", 'get: "/search" body: "*"')}
      ${rpc("Remove", 'delete: "/search" body: "book"', "Changed")}
      ${rpc("Link", 'custom: {kind: "LINK" path: "/links/{number}"} body: "*"')}
      ${rpc("Find", 'custom: {kind: "M-SEARCH" path: "/links/{number}"}')}
      ${rpc("Any", 'custom: {kind: "*" path: "/any"} body: "*"')}
      ${rpc("Count", 'get: "/count" response_body: "count"')}
      ${rpc("KindOf", 'get: "/kind" response_body: "kind"')}
      ${rpc("Counts", 'get: "/counts" response_body: "counts"')}
      ${rpc("Words", 'get: "/words" response_body: "words"')}
    }
    service Other { ${rpc("Read", 'get: "/v1/shelves/{name}/books/{author}"')} ${rpc("Alone", 'get: "/alone"')} }
    service Third { ${rpc("Fine", 'get: "/fine"')} }
    service Fourth { ${rpc("Broken", 'get: "nothing"')} ${rpc("Whole", 'get: "/whole"')} }`,
});
const service = (name: string) => serviceOf(registry, `ways.v1.${name}`);
const [ways, other, third, fourth] = [service("Ways"), service("Other"), service("Third"), service("Fourth")];

const shown = (asked: object) =>
  JSON.stringify(asked, (key, value) =>
    key === "$typeName" ? undefined : typeof value === "bigint" ? `${value}` : value,
  );

/** Tells which RPC was called, with what. */
const implementation = Object.fromEntries(
  ways.methods.map(({ localName, name }) => [
    localName,
    (asked: object) => ({ rpc: name, asked: shown(asked), count: 7n, kind: 1, counts: { a: 1n }, words: ["x"] }),
  ]),
);

/** What an answer tells. */
const told = (text: string) => {
  const { rpc, asked } = JSON.parse(text);
  return { rpc, ...JSON.parse(asked) };
};

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());
const start = async (...more: [Parameters<typeof serve>[2]?, Parameters<typeof serve>[3]?, boolean?]) => {
  server = await serve(ways, implementation as never, ...more);
  return server.call;
};
const json = (method: string, body: object) => ({
  method,
  body: JSON.stringify(body),
  headers: { "content-type": "application/json" },
});

/** By Node's client, which sends any verb that there is, and a body with each. Returns what was told, or the status of an error. */
async function send(verb: string, path: string, body?: object) {
  const content = body && JSON.stringify(body);
  const headers = content && { "content-type": "application/json", "content-length": content.length };
  const sent = request({ port: server.port, host: "127.0.0.1", method: verb, path, ...(headers && { headers }) });
  sent.end(content);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const answer = await text(response);
  return response.statusCode === 200 ? told(answer) : response.statusCode;
}

describe("paths", () => {
  test.each([
    ["/", "Root", {}],
    ["/v1/shelves/a/books/b", "Get", { name: "shelves/a/books/b" }],
    ["/v1/shelves/a%2Fb%20c/books/%2fd%3A", "Get", { name: "shelves/a%2Fb c/books/%2fd:" }],
    ["/v1/shelves/a/books/b:lend", "Get", { name: "shelves/a/books/b:lend" }],
    ["/files/a/b%2Fc%25/", "File", { name: "a/b%2Fc%/" }],
    ["/files", "File", { name: "" }],
    ["/trees/a/b%2F/of/c%2F", "Within", { name: "a/b%2F", by: { value: "c/" } }],
    ["/trees/of/c", "Within", { name: "", by: { value: "c" } }],
    ["/names/a%2Fb%3Ac", "One", { name: "a/b:c" }],
    ["/numbers/12345678901234567", "One", { number: "12345678901234567" }],
    ["/authors/Ann", "One", { by: { case: "author", value: "Ann" } }],
    ["/kinds/old", "One", { kind: 1 }],
    ["/ages/1.5s", "Age", { age: { seconds: "1", nanos: 500_000_000 } }],
  ])("%s", async (path, rpc, fields) => {
    const call = await start();
    expect(told((await call(path)).text)).toMatchObject({ rpc, ...fields });
  });

  test("what a field can't be is refused by its name", async () => {
    const call = await start();
    expect((await call("/kinds/new")).record()).toMatchObject({
      code: "INVALID_ID",
      message: "kind: must be one of old",
    });
    expect((await call("/numbers/x")).record()).toMatchObject({ message: "number: must be an integer" });
  });

  test("a custom verb is one by its own verb of HTTP, and %3A is text", async () => {
    const call = await start();
    const post = async (path: string) => told((await call(path, { method: "POST" })).text);
    expect(await post("/v1/shelves/a/books/b:lend")).toMatchObject({ rpc: "Lend", name: "shelves/a/books/b" });
    expect(await post("/v1/shelves/a/books/b%3Alend")).toMatchObject({ rpc: "Note", name: "shelves/a/books/b:lend" });
  });

  test("a slash at the end makes another path", async () => {
    const call = await start();
    for (const path of ["/v1/shelves/a/books/b/", "/v1/shelves//books/b", "/numbers/"])
      expect((await call(path)).record()).toMatchObject({ code: "ROUTE_NOT_FOUND", status: 404 });
  });

  test("the path and the body fill one message, and have to say the same", async () => {
    const call = await start();
    const one = { name: "books/1", title: "Two" };
    expect(told((await call("/v1/books/1", json("PUT", one))).text)).toMatchObject({ book: one });
    expect(told((await call("/v1/books/1", json("PUT", { title: "Two" }))).text)).toMatchObject({ book: one });
    expect((await call("/v1/books/2", json("PUT", one))).record()).toMatchObject({
      status: 400,
      message: "name: differs from the value in the path: leave it out, or say the same",
    });
    const whole = json("PUT", { book: { title: "Two" }, number: 3 });
    expect(told((await call("/v2/one", whole)).text)).toMatchObject({ book: { name: "one" }, number: "3" });
    expect((await call("/v2/one", json("PUT", { book: one }))).record()).toHaveProperty(
      "message",
      "book.name: differs from the value in the path: leave it out, or say the same",
    );
  });
});

describe("verbs", () => {
  test("GET and DELETE can have a body", async () => {
    await start();
    expect(await send("GET", "/search", { number: 1 })).toMatchObject({ rpc: "Search", number: "1" });
    expect(await send("DELETE", "/search?number=2", { title: "T" })).toMatchObject({
      rpc: "Remove",
      number: "2",
      book: { title: "T" },
    });
    server.app.close();
    await start({ limits: { bodyBytes: 10 } });
    expect(await send("GET", "/search", { name: "x".repeat(20) })).toBe(413);
  });

  test("any that Node's parser knows", async () => {
    const call = await start();
    expect(await send("LINK", "/links/4", { name: "n" })).toMatchObject({ rpc: "Link", number: "4", name: "n" });
    expect(await send("M-SEARCH", "/links/4")).toMatchObject({ rpc: "Find", number: "4" });
    expect(await send("UNLINK", "/links/4")).toBe(405);
    expect((await call("/links/4")).headers.get("allow")).toBe("LINK, M-SEARCH, OPTIONS");
  });

  test("* is all of them, but for OPTIONS, which tells what there is", async () => {
    const call = await start();
    for (const verb of ["POST", "GET", "TRACE", "PROPFIND", "PATCH"])
      expect(await send(verb, "/any", { name: verb })).toMatchObject({ rpc: "Any", name: verb });
    const { status, headers } = await call("/any", { method: "OPTIONS" });
    expect([status, headers.get("allow")]).toEqual([204, expect.stringMatching(/^ACL, BIND, .*GET, HEAD, .*PURGE/)]);
  });

  test("one that is not registered, which HTTP/2 can bring, is no operation's", async () => {
    await start({}, undefined, true);
    const client = connect(`http://127.0.0.1:${server.port}`);
    const ask = async (method: string) => {
      const stream = client.request({ ":method": method, ":path": "/any" });
      const [headers] = await once(stream.end(), "response");
      stream.resume();
      return headers[":status"];
    };
    // TRACE comes without a body, which is no JSON.
    expect([await ask("FETCH"), await ask("TRACE")]).toEqual([405, 400]);
    client.close();
  });

  test("a HEAD is a GET without its content", async () => {
    const call = await start();
    const got = await call("/v1/shelves/a/books/b");
    const { status, headers, text } = await call("/v1/shelves/a/books/b", { method: "HEAD" });
    expect([status, text, headers.get("content-length")]).toEqual([200, "", `${got.text.length}`]);
  });
});

test("response_body can be of any kind", async () => {
  const call = await start();
  const answers = await Promise.all(
    ["/count", "/kind", "/counts", "/words"].map(async (path) => (await call(path)).text),
  );
  expect(answers).toEqual(["7", '"old"', '{"a":1}', '["x"]']);
});

describe("beside routes of the host's", () => {
  test("request.operation is what is asked for, in every hook, and nothing where a route of the host's answers", async () => {
    const seen: unknown[] = [];
    const call = await start({}, async (app: FastifyInstance) => {
      app.addHook("onResponse", (request, _reply, done) => {
        seen.push([request.operation?.id, request.operation?.route]);
        done();
      });
      app.get("/files/own", async () => "own");
    });
    expect((await call("/files/own")).text).toBe("own");
    await call("/files/others");
    await call("/v1/shelves/a/books/b:lend", { method: "POST" });
    await call("/nowhere");
    await call("/files/own", { method: "PUT" });
    expect(seen).toEqual([
      [undefined, undefined],
      ["file", "/files/{name=**}"],
      ["lend", "/v1/{name=shelves/*/books/*}:lend"],
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  test("405 knows the verbs of both", async () => {
    const call = await start({}, async (app: FastifyInstance) => {
      app.put("/files/own", async () => "own");
    });
    const { status, headers } = await call("/files/own", { method: "POST" });
    expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS, PUT"]);
  });
});

describe("conflicts", () => {
  const transport = createRouterTransport(() => {});
  const services = [ways, other, third, fourth].map((desc) => ({ desc, transport }));

  test("are found by shape and verb, and name both", () => {
    const found = conflictsOf([ways, other, third].flatMap(operationsOf));
    expect(found.map(({ reason }) => reason)).toEqual([
      "no request can tell ways.v1.Ways.Get (GET /v1/{name=shelves/*/books/*}) and " +
        "ways.v1.Other.Read (GET /v1/shelves/{name}/books/{author}) apart: give each a path or a verb of its own",
    ]);
    expect(conflictsOf([ways, third].flatMap(operationsOf))).toEqual([]);
  });

  test("refuse the services that have them, and the others are served", async () => {
    const lines: string[] = [];
    const stream = { write: (line: string) => void lines.push(JSON.parse(line).msg) };
    const app = fastify({ logger: { level: "error", stream } });
    await app.register(transcoder, { services, errors: records });
    const status = async (url: string) => (await app.inject(url)).statusCode;
    expect(await status("/alone")).toBe(404);
    expect(await status("/v1/shelves/a/books/b")).toBe(404);
    for (const path of ["/fine", "/whole"]) expect(await status(path)).not.toBe(404);
    expect(lines.filter((line) => /can't be served|Broken/.test(line))).toEqual([
      expect.stringMatching(/Fourth\.Broken: the path "nothing" must start with a slash/),
      expect.stringMatching(/^ways\.v1\.Ways, ways\.v1\.Other can't be served: no request can tell/),
    ]);
    await app.close();
  });

  test("with the option strict nothing is", async () => {
    const app = fastify();
    await expect(async () => app.register(transcoder, { services, strict: true })).rejects.toThrow(
      /no request can tell/,
    );
  });
});

describe("fields and contents", () => {
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

  let served: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    served = await serve(shelf, {
      getShelf: (request: unknown) => request,
      clear: () => ({}),
      dust: (request: unknown) => request,
    } as never);
  });
  afterAll(() => served.app.close());

  test("a path has room for a field whose name in JSON is no word", async () => {
    expect((await served.call("/shelves/3/4")).record()).toEqual({ "shelf-id": 3, place: 4 });
    expect((await served.call("/shelves/x/4")).record()).toMatchObject({ message: "shelf-id: must be an integer" });
  });

  test("google.protobuf.Empty is an answer without members", async () => {
    expect(await served.call("/shelves/3", { method: "DELETE" })).toMatchObject({ status: 200, text: "{}" });
  });

  test("content means nothing to an operation that takes none, whatever its type and size", async () => {
    const init = { method: "POST", body: "x".repeat(100_000), headers: { "content-type": "text/plain" } };
    expect((await served.call("/shelves/3", init)).record()).toEqual({ "shelf-id": 3, place: 0 });
    const half = { method: "POST", body: '{"place":', headers: { "content-type": "application/json" } };
    expect((await served.call("/shelves/4", half)).record()).toEqual({ "shelf-id": 4, place: 0 });
  });
});
