/** `refuseEarly` of error-answers.ts, before Fastify: the same answers as from `authorize`, for the same requests. */
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createRouterTransport } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { compileLibrary, serviceOf } from "../fixtures/compile.ts";
import { records, serve } from "../fixtures/server.ts";
import { type EarlyRefusals, type Errors, HttpError, refuseEarly, type TranscoderOptions } from "../index.ts";

const desc = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
const services = [{ desc, transport: createRouterTransport(() => {}) }];
const error = new HttpError("UNAVAILABLE", "There is too much to do.");
const info = {
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason: "UNAVAILABLE",
  domain: "connect-transcoder",
};

const closing: (() => Promise<unknown>)[] = [];
afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

/** A server that refuses everything early. Its port. */
async function early(options: Partial<EarlyRefusals> = {}): Promise<number> {
  const listener = refuseEarly({ services, error, refuses: () => true, ...options }, (_, response) =>
    response.end("next"),
  );
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return (server.address() as AddressInfo).port;
}

/** A server where `authorize` refuses everything. Its port. */
async function late(options: Partial<TranscoderOptions> = {}): Promise<number> {
  const authorize = () => {
    throw error;
  };
  const { app, port } = await serve(desc, {}, { errors: "status", authorize, ...options });
  closing.push(() => app.close());
  return port;
}

/** What is answered to a target as it is, without what differs each time. */
async function ask(port: number, path: string, method = "GET", headers: Record<string, string> = {}) {
  const sent = request({ port, path, method, agent: false, headers }).end();
  const [response] = await once(sent, "response");
  const { date, connection, ...fields } = response.headers;
  if (!("x-request-id" in headers)) delete fields["x-request-id"];
  return { status: response.statusCode, headers: fields, body: await text(response) };
}

test.each<[string, Errors | undefined, string, object]>([
  ["a Status by default", undefined, "application/json", { code: 14, message: error.message, details: [info] }],
  ["a problem", "problem", "application/problem+json", { status: 503, code: 14, details: [info] }],
  ["one's own", records, "application/json", { code: "UNAVAILABLE", message: error.message, status: 503 }],
])("%s", async (_what, errors, type, body) => {
  const port = await early({ errors });
  const refused = await ask(port, "/books/1");
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
  expect(refused.headers["content-type"]).toBe(`${type}; charset=utf-8`);
  expect(JSON.parse(refused.body)).toMatchObject(body);
  expect((await ask(port, "/nothing")).body).toBe("next");
});

test.each<[string, string, string?, Record<string, string>?]>([
  ["an operation that ends, with its headers", "/books/1"],
  ["a query", "/books/1?a=b"],
  ["text that is percent-encoded", "/%62ooks/%31"],
  ["a path that can't be decoded", "/books/%zz"],
  ["a slash at the end of an id", "/books/1%2F"],
  ["another verb", "/shelves/1/books", "POST"],
  ["a caller who prefers a problem", "/books/1", "GET", { accept: "application/problem+json" }],
  ["a caller with an id", "/books/1", "GET", { "x-request-id": "mine-1" }],
  ["a caller with a trace", "/books/1", "GET", { traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` }],
])("%s gets the answer that authorize would bring about", async (_what, path, method, headers) => {
  const refused = await ask(await early(), path, method, headers);
  expect(refused.status).toBe(503);
  expect(refused).toEqual(await ask(await late(), path, method, headers));
});

test.each([
  ["HEAD", "/books/1"],
  ["OPTIONS", "/books/1"],
  ["OPTIONS", "*"],
  ["TRACE", "/books/1"],
  ["GET", "/books/"],
  ["GET", "/Books/1"],
  ["GET", "http://a.example/books/1"],
  ["GET", "http://a.example/nothing"],
])("%s %s asks for no operation, or may go on", async (method, path) => {
  expect((await ask(await early(), path, method)).status).toBe(200);
});

test("only what is behind the base path is refused", async () => {
  const basePath = "/api";
  const [refusing, port] = [await early({ basePath }), await late({ basePath })];
  expect((await ask(refusing, "/books/1")).body).toBe("next");
  const refused = await ask(refusing, "/api/books/1");
  expect(refused.headers.link).toContain("/api/books?isbn=1");
  expect(refused).toEqual(await ask(port, "/api/books/1"));
});

test("what refuses is asked with the operation, and may say no", async () => {
  const asked: string[] = [];
  const refuses: EarlyRefusals["refuses"] = ({ method }, { route }) => asked.push(`${method} ${route}`) > 1;
  const port = await early({ refuses });
  expect((await ask(port, "/books/1")).body).toBe("next");
  expect((await ask(port, "/books/1")).status).toBe(503);
  expect(asked).toEqual(Array(2).fill("GET /books/{isbn}"));
});

test("more headers stand beside those of every answer, and Vary names what either depends on", async () => {
  const moreHeaders = () => ({ vary: "Origin", "access-control-allow-origin": "https://a.example" });
  const { headers } = await ask(await early({ moreHeaders, apiVersion: "7.0.0" }), "/books/1");
  expect(headers).toMatchObject({
    vary: "Origin, Accept",
    "access-control-allow-origin": "https://a.example",
    "api-version": "7.0.0",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  expect((await ask(await early(), "/books/1")).headers.vary).toBe("Accept");
});
