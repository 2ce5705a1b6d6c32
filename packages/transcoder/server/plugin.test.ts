/** The plugin by itself: its defaults, its errors without a catalogue and with one, and what is beside it on a server. */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterEach, describe, expect, test } from "vitest";
import { compileLibrary, enumOf, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { HttpError, type TranscoderOptions } from "../index.ts";

const service = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
const reasons = enumOf(compileLibrary(), "foreign.library.v1.Reason");
const catalogue = { reasons, domain: "library" };

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

type More = Parameters<typeof serve>[3];
async function start(implementation: object, options: Partial<TranscoderOptions> = {}, more?: More) {
  server = await serve(service, implementation as Partial<ServiceImpl<typeof service>>, options, more);
  return server.call;
}

/** A library whose every book fails. */
const failing = (error: unknown) => ({
  getBook() {
    throw error;
  },
});

const because = (reason: string, code: Code, domain = "library") =>
  new ConnectError("said the library", code, undefined, [
    { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason, domain }) },
  ]);

describe("errors without a catalogue", () => {
  // google/rpc/code.proto
  test.each([
    [Code.Canceled, "CANCELLED", 499],
    [Code.InvalidArgument, "INVALID_ARGUMENT", 400],
    [Code.NotFound, "NOT_FOUND", 404],
    [Code.AlreadyExists, "ALREADY_EXISTS", 409],
    [Code.PermissionDenied, "PERMISSION_DENIED", 403],
    [Code.ResourceExhausted, "RESOURCE_EXHAUSTED", 429],
    [Code.FailedPrecondition, "FAILED_PRECONDITION", 400],
    [Code.Aborted, "ABORTED", 409],
    [Code.OutOfRange, "OUT_OF_RANGE", 400],
    [Code.Unimplemented, "UNIMPLEMENTED", 501],
    [Code.Unauthenticated, "UNAUTHENTICATED", 401],
    [Code.Unavailable, "UNAVAILABLE", 503],
    [Code.DeadlineExceeded, "DEADLINE_EXCEEDED", 504],
  ])("a service's code %i is %s, in its words", async (code, name, status) => {
    const call = await start(failing(new ConnectError("said the library", code)));
    const answer = await call("/books/1");
    expect(answer.record()).toEqual({ code: name, message: "said the library", status });
    expect(answer.headers.get("retry-after")).toBe(status === 429 || status === 503 ? "1" : null);
  });

  test.each([
    [Code.Unknown, "UNKNOWN", 500, /^Something went wrong\. Quote request [\da-f]{32}\.$/],
    [Code.Internal, "INTERNAL", 500, /^Something went wrong\. Quote request [\da-f]{32}\.$/],
    [Code.DataLoss, "DATA_LOSS", 500, /^Something went wrong\. Quote request [\da-f]{32}\.$/],
  ])("code %i is %s, and its words stay inside", async (code, name, status, message) => {
    const call = await start(failing(new ConnectError("secret", code)));
    expect((await call("/books/1")).record()).toEqual({ code: name, message: expect.stringMatching(message), status });
  });

  test("a reason is passed on, with the status of its gRPC code, also where the transcoder has another for it", async () => {
    const lent = await start(failing(because("BOOK_LENT", Code.FailedPrecondition, "anybody")));
    expect((await lent("/books/1")).record()).toMatchObject({ code: "BOOK_LENT", status: 400 });
    await server.app.close();
    const changed = await start(failing(because("ETAG_MISMATCH", Code.Aborted)));
    expect((await changed("/books/1")).record()).toMatchObject({ code: "ETAG_MISMATCH", status: 409 });
  });

  test.each([
    ["true", "true"],
    ["yes", null],
  ])("a refusal that says %j of being a replay: Idempotent-Replayed is %j", async (said, header) => {
    const call = await start(failing(new ConnectError("no", Code.NotFound, { "idempotent-replayed": said })));
    const { status, headers } = await call("/books/1");
    expect([status, headers.get("idempotent-replayed")]).toEqual([404, header]);
  });

  test("a service that is not there is no business of its callers'", async () => {
    const transport = createConnectTransport({ baseUrl: "http://127.0.0.1:1", httpVersion: "1.1" });
    const call = await start({}, { services: [{ desc: service, transport }] });
    const { status, headers, text } = await call("/books/1");
    expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
    expect(text).not.toMatch(/127\.0\.0\.1|ECONN/);
  });

  test("nor is how a call to it broke", async () => {
    const broken = createServer((socket) => socket.resetAndDestroy()).listen(0, "127.0.0.1");
    await once(broken, "listening");
    const baseUrl = `http://127.0.0.1:${(broken.address() as { port: number }).port}`;
    const transport = createConnectTransport({ baseUrl, httpVersion: "1.1" });
    const call = await start({}, { services: [{ desc: service, transport }] });
    expect((await call("/books/1")).record()).toMatchObject({ code: "UNAVAILABLE", status: 503 });
    broken.close();
  });
});

describe("errors with a catalogue", () => {
  test("its reasons have their own statuses, and others are faults of the service", async () => {
    const lent = await start(failing(because("BOOK_LENT", Code.FailedPrecondition)), { errors: { catalogue } });
    expect((await lent("/books/1")).record()).toEqual({ code: "BOOK_LENT", message: "said the library", status: 423 });
    expect((await lent("/books/x")).record()).toMatchObject({ code: "INVALID_ID", status: 400 });
    await server.app.close();
    for (const error of [
      because("BOOK_LENT", Code.FailedPrecondition, "elsewhere"),
      because("EATEN", Code.FailedPrecondition),
      new ConnectError("no reason", Code.NotFound),
    ]) {
      const call = await start(failing(error), { errors: { catalogue } });
      expect((await call("/books/1")).record()).toMatchObject({ code: "UPSTREAM_ERROR", status: 502 });
      await server.app.close();
    }
  });
});

const getBook = ({ isbn }: { isbn: bigint }) => ({ isbn });
const sort = ({ numbers }: { numbers: bigint[] }) => ({ numbers: numbers.toSorted((a, b) => Number(a - b)) });

describe("on a server", () => {
  test("every answer has an identifier and a version, and a service gets the identifier", async () => {
    const seen: (string | null)[] = [];
    const implementation = {
      getBook(request: { isbn: bigint }, { requestHeader }: { requestHeader: Headers }) {
        seen.push(requestHeader.get("x-request-id"));
        return getBook(request);
      },
    };
    const call = await start(implementation, { apiVersion: "2.1.0" });
    const known = await call("/books/1", { headers: { "x-request-id": "mine" } });
    const unknown = await call("/nowhere", { headers: { "x-request-id": "not mine!" } });
    expect(known.headers.get("x-request-id")).toBe("mine");
    expect(unknown.headers.get("x-request-id")).toMatch(/^[\da-f]{32}$/);
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    const traceparent = `00-${trace}-00f067aa0ba902b7-00`;
    const traced = await call("/nowhere", { headers: { traceparent } });
    expect(traced.headers.get("x-request-id")).toBe(trace);
    const both = await call("/nowhere", { headers: { traceparent, "x-request-id": "mine" } });
    expect(both.headers.get("x-request-id")).toBe("mine");
    const wrong = await call("/nowhere", { headers: { traceparent: `${traceparent}-00` } });
    expect(wrong.headers.get("x-request-id")).toMatch(/^(?!4bf92f)[\da-f]{32}$/);
    for (const { headers } of [known, unknown]) expect(headers.get("api-version")).toBe("2.1.0");
    expect(seen).toEqual(["mine"]);
  });

  test("what is no HTTP is answered as well, and so is CONNECT", async () => {
    await start({ getBook });
    const say = async (bytes: string) => {
      const socket = connect(server.port, "127.0.0.1");
      socket.end(bytes);
      return text(socket);
    };
    expect(await say("nonsense\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"INVALID_HEADER"/);
    expect(await say("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n")).toMatch(/^HTTP\/1\.1 404 [\s\S]*"ROUTE_NOT_FOUND"/);
    expect(await say("GET /books/1 HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 400 [\s\S]*"Host: must be given once"/,
    );
    const endless = `GET /books/1 HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(60_000)}\r\n\r\n`;
    expect(await say(endless)).toMatch(/^HTTP\/1\.1 431 /);
  });

  test("limits have defaults, and each can be set by itself", async () => {
    const call = await start({ getBook, sort }, { limits: { urlBytes: 300 } });
    expect((await call(`/books/1?${"x".repeat(300)}`)).record()).toMatchObject({ code: "URI_TOO_LONG" });
    const send = (body: string) =>
      call("/sort", { method: "POST", body, headers: { "content-type": "application/json" } });
    const ones = (bytes: number) => `[${"1,".repeat(bytes / 2)}1]`;
    expect((await send(ones(70_000))).text).toMatch(/^\[1,1,/);
    expect((await send(ones(4 * 1024 * 1024))).record()).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    expect((await send(nested(100))).record()).toMatchObject({ code: "VALIDATION_FAILED" });
    expect((await send(nested(101))).record()).toMatchObject({ code: "MALFORMED_JSON" });
  });

  test.each([
    ["/books/1?colour=red", {}, "colour"],
    ["/cards/3", { method: "PUT", body: '{"title":"T","keeper":{"age":1}}' }, "keeper.age"],
  ])("what is not known is an error, or ignored: %s %j", async (path, init, name) => {
    const headers = { "content-type": "application/json" };
    const catalogue = ({ isbn }: { isbn: bigint }) => ({ card: { isbn } });
    const call = await start({ getBook, catalogue });
    const record = { code: "UNKNOWN_FIELD", message: `${name}: is not known here`, status: 400 };
    expect((await call(path, { headers, ...init })).record()).toEqual(record);
    await server.app.close();
    const mild = await start({ getBook, catalogue }, { ignoreUnknown: true });
    expect((await mild(path, { headers, ...init })).status).toBe(200);
    const strict = { headers: { ...headers, prefer: "handling=strict" } };
    expect((await mild(path, { ...init, ...strict })).record()).toEqual(record);
  });

  test("a body that does not say its type is JSON, if it need not say it", async () => {
    const init = { method: "POST", body: Buffer.from("[2,1]") };
    const chunked = () => ({
      method: "POST",
      body: new Blob(["[2,1]"]).stream(),
      duplex: "half" as const,
    });
    const call = await start({ sort });
    for (const one of [init, chunked()]) expect((await call("/sort", one)).text).toBe("[1,2]");
    await server.app.close();
    const strict = await start({ sort }, { requireContentType: true });
    for (const one of [init, chunked()])
      expect((await strict("/sort", one)).record()).toMatchObject({ code: "UNSUPPORTED_MEDIA_TYPE" });
  });

  test.each([
    ["grpc-timeout", "50m", undefined, 504],
    ["x-server-timeout", "0.05", undefined, 504],
    ["grpc-timeout", "1n", undefined, 408],
    ["grpc-timeout", "soon", undefined, 400],
    ["grpc-timeout", "soon", ["X-Server-Timeout"], 200],
  ] as const)("the time that a caller gives: %s: %s of %j is %i", async (name, value, timeoutHeaders, status) => {
    const slow = async (request: { isbn: bigint }, { signal }: { signal: AbortSignal }) => {
      if (status === 504)
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return getBook(request);
    };
    // Where the call has to begin before the time is over, no time passes.
    const clock = status === 504 ? () => 0 : undefined;
    const call = await start({ getBook: slow }, { timeoutHeaders, clock });
    expect((await call("/books/1", { headers: { [name]: value } })).status).toBe(status);
  });

  test("who may not is refused before anything else is judged", async () => {
    const authorize: TranscoderOptions["authorize"] = ({ headers }, { id }) => {
      if (!headers.authorization) throw new HttpError("UNAUTHENTICATED", "Who are you?");
      if (id !== "getBook") throw new HttpError("PAYMENT_REQUIRED", "That costs.", { "x-price": "1" }, 402);
    };
    const call = await start({ getBook }, { authorize });
    expect((await call("/books/x")).record()).toMatchObject({ code: "UNAUTHENTICATED", status: 401 });
    const ann = { headers: { authorization: "ann" } };
    expect((await call("/books/1", ann)).status).toBe(200);
    const paid = await call("/books?limit=x", ann);
    expect(paid.record()).toEqual({ code: "PAYMENT_REQUIRED", message: "That costs.", status: 402 });
    expect(paid.headers.get("x-price")).toBe("1");
  });

  test("routes that follow are answered for, and parse their bodies as ever", async () => {
    const call = await start({ getBook }, {}, async (app) => {
      app.post("/own", async ({ body }) => body);
    });
    const init = { method: "POST", body: '{"a":1}', headers: { "content-type": "application/json" } };
    expect((await call("/own", init)).record()).toEqual({ a: 1 });
    expect((await call("/own")).record()).toMatchObject({ code: "METHOD_NOT_ALLOWED" });
    expect((await call("/own", { ...init, body: "{" })).record()).toMatchObject({ code: "BAD_REQUEST", status: 400 });
  });

  test("a route that takes whatever follows takes nothing, too", async () => {
    const call = await start({}, {}, async (app) => {
      app.get("/files/*", async ({ params }) => params);
    });
    expect((await call("/files/a/b")).record()).toEqual({ "*": "a/b" });
    expect((await call("/files/")).record()).toEqual({ "*": "" });
  });

  test("a route that takes all that is left gets it, but none of what has a route", async () => {
    const call = await start({ getBook }, {}, async (app) => {
      app.all("/*", async ({ params }) => params);
    });
    expect((await call("/pages/a")).record()).toEqual({ "*": "pages/a" });
    expect((await call("/pages/a", { method: "POST" })).record()).toEqual({ "*": "pages/a" });
    expect((await call("/books/1")).record()).toMatchObject({ isbn: 1 });
    expect((await call("/books/1", { method: "POST" })).record()).toMatchObject({ code: "METHOD_NOT_ALLOWED" });
    expect((await call("/pages/a", { method: "OPTIONS" })).status).toBe(404);
  });
});

describe("the document", () => {
  test("is not served unless asked for", async () => {
    const call = await start({});
    expect((await call("/openapi.json")).status).toBe(404);
  });

  test("without a catalogue it leaves open what services say, with one it lists all of it", async () => {
    const openApi = { title: "Library" };
    const open = await start({}, { openApi, basePath: "/api", errors: "status" });
    const document = (await open("/api/openapi.json")).record();
    expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
    expect(document).toMatchObject({
      info: { title: "Library", version: "1.0.0" },
      servers: [{ url: "/api" }],
      paths: { "/books/{isbn}": { get: { responses: { 404: expect.anything(), 409: expect.anything() } } } },
      components: {
        schemas: { Status: { properties: { code: { type: "integer" }, details: { type: "array" } } } },
        examples: { NOT_FOUND: { value: { code: 5, details: [] } } },
      },
    });
    expect(JSON.stringify(document)).not.toContain('"enum":["NOT_FOUND"]');
    await server.app.close();

    const closed = await start({}, { openApi: { ...openApi, path: "/spec" }, errors: { catalogue } });
    const { components, paths } = (await closed("/spec")).record() as {
      components: unknown;
      paths: Record<string, { get: { responses: object } }>;
    };
    expect(components).toMatchObject({
      schemas: { Error: { properties: { code: { enum: expect.arrayContaining(["BOOK_LENT", "INVALID_ID"]) } } } },
    });
    expect(Object.keys(paths["/books/{isbn}"]?.get.responses ?? {})).not.toContain("409");
  });
});
