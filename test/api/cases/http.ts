/** Methods, headers and media types, and the order in which they are checked. */
import { expect } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Case, call, type HttpCall, ONLY_HTTP, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

type Headers = Record<string, string>;

const DEPRECATION = "@1793491200";
const SUNSET = "Fri, 31 Dec 2027 23:59:59 GMT";
const deprecated = { deprecation: DEPRECATION, sunset: SUNSET };

const paths: readonly (readonly [path: string, allow: string])[] = [
  ["/pets", "GET, HEAD, OPTIONS, POST"],
  ["/pets/1", "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"],
  ["/categories", "GET, HEAD, OPTIONS, POST"],
  ["/categories/1", "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"],
  ["/store/orders", "GET, HEAD, OPTIONS, POST"],
  ["/store/orders/1", "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"],
  ["/store/inventory", "GET, HEAD, OPTIONS"],
  ["/store/inventory/1", "GET, HEAD, OPTIONS, PATCH, PUT"],
  ["/openapi.json", "GET, HEAD, OPTIONS"],
  ["/docs", "GET, HEAD, OPTIONS"],
  ["/healthz", "GET, HEAD, OPTIONS"],
  ["/readyz", "GET, HEAD, OPTIONS"],
];
const unknownPaths = [
  "/",
  "/pet",
  "/Pets",
  "/pets/",
  "/pets/1/",
  "/pets/1/2",
  "//pets",
  "/store",
  "/store/orders/",
  "/docs/",
];

const refused = (
  name: string,
  http: HttpCall,
  code: NonNullable<Case["fails"]>["http"],
  says = "",
  headers: Headers = {},
) => rule(name, { http, oneEndpoint: ONLY_HTTP.headers, fails: { http: code as "400 INVALID_HEADER", says, headers } });
const order = (name: string, http: HttpCall, code: NonNullable<Case["fails"]>["http"]) =>
  refused(`order of checks: ${name}`, http, code);

/** Reads a category with these headers. */
const read = (name: string, headers: Record<string, string | string[]>, seen: Record<string, unknown> = {}) =>
  rule(name, {
    given: (shop: Shop) => shop.category(),
    http: ({ id }) => ({ method: "GET", path: `/categories/${id}`, headers }),
    oneEndpoint: ONLY_HTTP.headers,
    answers: ({ id }) => ({ http: { status: 200, headers: seen, body: { id: Number(id), name: "dog" } } }),
  });
const requestId = (name: string, sent: string | string[], taken: boolean) =>
  read(
    `X-Request-Id: ${name}`,
    { "x-request-id": sent },
    {
      "x-request-id": taken ? sent : expect.not.stringContaining(String(sent).slice(0, 200)),
    },
  );
const notAcceptable = (accept: string) =>
  refused(`Accept: ${accept}`, { method: "GET", path: "/categories", headers: { accept } }, "406 NOT_ACCEPTABLE");
const badTimeout = (value: string) =>
  refused(
    `X-Server-Timeout: "${value}" is no number of seconds above 0`,
    { method: "GET", path: "/categories", headers: { "x-server-timeout": value } },
    "400 INVALID_HEADER",
    "X-Server-Timeout",
  );
const successor = (id: bigint | number | string) => `</pets?id=${id}>; rel="successor-version"`;

export const http: readonly Case[] = [
  ...paths.flatMap(([path, allow]) => [
    rule(`OPTIONS ${path}`, {
      http: { method: "OPTIONS", path },
      oneEndpoint: ONLY_HTTP.methods,
      answers: () => ({ http: { status: 204, headers: { allow } } }),
    }),
    rule(`${path} with another method`, {
      http: { method: "TRACE", path },
      oneEndpoint: ONLY_HTTP.methods,
      fails: { http: "405 METHOD_NOT_ALLOWED", headers: { allow }, says: "TRACE" },
    }),
  ]),
  rule("POST on one record", {
    http: { method: "POST", path: "/pets/1", body: {} },
    oneEndpoint: ONLY_HTTP.methods,
    fails: { http: "405 METHOD_NOT_ALLOWED", headers: { allow: "DELETE, GET, HEAD, OPTIONS, PATCH, PUT" } },
  }),
  rule("DELETE of a list", {
    http: { method: "DELETE", path: "/pets" },
    oneEndpoint: ONLY_HTTP.methods,
    fails: { http: "405 METHOD_NOT_ALLOWED", headers: { allow: "GET, HEAD, OPTIONS, POST" } },
  }),
  ...unknownPaths.map((path) =>
    rule(`unknown path ${path}`, {
      http: { method: "GET", path },
      oneEndpoint: ONLY_HTTP.path,
      fails: { http: "404 ROUTE_NOT_FOUND" },
    }),
  ),
  rule("HEAD of one record answers like GET without a body", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "HEAD", path: `/pets/${id}` }),
    oneEndpoint: ONLY_HTTP.methods,
    answers: ({ id, etag }) => ({
      http: {
        status: 200,
        headers: { etag, ...deprecated, link: successor(id), "content-length": expect.stringMatching(/^[1-9]/) },
      },
    }),
  }),
  ...["/pets", "/categories", "/store/orders", "/store/inventory", "/openapi.json", "/docs", "/healthz", "/readyz"].map(
    (path) =>
      rule(`HEAD ${path}`, {
        http: { method: "HEAD", path },
        oneEndpoint: ONLY_HTTP.methods,
        answers: () => ({ http: { status: 200, headers: { "content-type": expect.any(String) } } }),
      }),
  ),
  rule("GET /pets/{petId} is deprecated", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "GET", path: `/pets/${id}` }),
    rpc: ({ id }) => call(PetService.method.getPet, { petId: id }),
    answers: ({ id }) => ({
      http: { status: 200, headers: { ...deprecated, link: successor(id) }, body: expect.any(Object) },
      rpc: { headers: { deprecation: null, sunset: null, link: null }, message: expect.any(Object) },
    }),
  }),
  rule("GET /pets/{petId} says so on 304", {
    given: (shop) => shop.pet(),
    http: ({ id, etag }) => ({ method: "GET", path: `/pets/${id}`, headers: { "if-none-match": etag } }),
    oneEndpoint: ONLY_HTTP.headers,
    answers: ({ id }) => ({ http: { status: 304, headers: { ...deprecated, link: successor(id) } } }),
  }),
  refused("GET /pets/{petId} says so on 404", { method: "GET", path: "/pets/-7" }, "404 PET_NOT_FOUND", "", {
    ...deprecated,
    link: successor(-7),
  }),
  rule("GET /pets/{petId} says so on 400; the link is sent when the id is an int64", {
    http: { method: "GET", path: "/pets/rex" },
    oneEndpoint: ONLY_HTTP.path,
    fails: { http: "400 INVALID_ID", headers: { ...deprecated, link: null } },
  }),
  rule("other operations on a pet are not deprecated", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({ method: "PATCH", path: `/pets/${id}`, body: {} }),
    oneEndpoint: ONLY_HTTP.headers,
    answers: () => ({
      http: { status: 200, headers: { deprecation: null, sunset: null, link: null }, body: expect.any(Object) },
    }),
  }),
  requestId("taken over when it is sane", "aA0._:/+=-", true),
  requestId("128 characters", "x".repeat(128), true),
  requestId("129 characters", "x".repeat(129), false),
  requestId("with a space", "two words", false),
  requestId("with a sign that logs could stumble over", '"x"', false),
  refused(
    "X-Request-Id is on errors, too",
    { method: "GET", path: "/nowhere", headers: { "x-request-id": "mine-1" } },
    "404 ROUTE_NOT_FOUND",
    "",
    {
      "x-request-id": "mine-1",
      "api-version": "1.0.0",
    },
  ),
  read("Accept: JSON", { accept: "application/json" }),
  read("Accept: anything", { accept: "*/*" }),
  read("Accept: any application", { accept: "text/html, application/*;q=0.1" }),
  read("Accept: JSON with a charset", { accept: "application/json; charset=utf-8" }),
  read(
    "Accept: who takes problems takes JSON for successes",
    { accept: "application/problem+json" },
    {
      "content-type": expect.stringMatching(/^application\/json/),
    },
  ),
  ...["text/html", "application/xml, text/*", "application/json;q=0, text/html", "application/vnd.api+json"].map(
    notAcceptable,
  ),
  // None ends before the answer, however slow the machine is.
  ...["9.5", "10", "9", "999999999", "9.25"].map((seconds) =>
    read(`X-Server-Timeout: ${seconds}`, { "x-server-timeout": seconds }),
  ),
  ...["0", "0.0", "-1", "1s", "", "1e3", "Infinity", "NaN", ".5", "1,5", "0x5"].map(badTimeout),
  order(
    "an unknown path before its length",
    { method: "GET", path: `/nowhere?${"x".repeat(9000)}` },
    "404 ROUTE_NOT_FOUND",
  ),
  order(
    "the method before the length",
    { method: "TRACE", path: `/pets?${"x".repeat(9000)}` },
    "405 METHOD_NOT_ALLOWED",
  ),
  order(
    "the length before Accept",
    { method: "GET", path: `/pets?${"x".repeat(9000)}`, headers: { accept: "text/html" } },
    "414 URI_TOO_LONG",
  ),
  order(
    "the size of headers before Accept",
    { method: "GET", path: "/pets", headers: { accept: "text/html", x: "y".repeat(17_000) } },
    "431 HEADERS_TOO_LARGE",
  ),
  order(
    "Accept before Content-Type",
    { method: "POST", path: "/pets", headers: { accept: "text/html", "content-type": "text/plain" }, body: "x" },
    "406 NOT_ACCEPTABLE",
  ),
  order(
    "Content-Type before the size of the body",
    { method: "POST", path: "/pets", headers: { "content-type": "text/plain" }, body: "x".repeat(70_000) },
    "415 UNSUPPORTED_MEDIA_TYPE",
  ),
  order(
    "the size of the body before headers",
    { method: "POST", path: "/pets", headers: { "x-server-timeout": "x" }, body: " ".repeat(70_000) },
    "413 PAYLOAD_TOO_LARGE",
  ),
  order(
    "headers before the path",
    { method: "PUT", path: "/pets/x", headers: { "if-match": "x" }, body: "x" },
    "400 INVALID_HEADER",
  ),
  order("the path before the body", { method: "PUT", path: "/pets/x", body: "x" }, "400 INVALID_ID"),
  order("the query before the body", { method: "POST", path: "/pets?%zz", body: "x" }, "400 INVALID_QUERY"),
  order(
    "an unknown parameter before the body",
    { method: "POST", path: "/pets?x=1", headers: { prefer: "handling=strict" }, body: "x" },
    "400 UNKNOWN_FIELD",
  ),
  order(
    "the body before the record",
    { method: "PUT", path: "/pets/0", body: { name: " ", categoryId: 1 } },
    "400 VALIDATION_FAILED",
  ),
  rule("order of checks: the record, its revision, then what is stored", {
    given: (shop) => shop.pet(),
    http: ({ categoryId }) => ({ method: "DELETE", path: `/categories/${categoryId}`, headers: { "if-match": '"9"' } }),
    rpc: ({ categoryId }) => call(CategoryService.method.deleteCategory, { categoryId, etag: '"9"' }),
    fails: { http: "412 ETAG_MISMATCH", rpc: "ABORTED ETAG_MISMATCH" },
  }),
  refused(
    "501: a body in a transfer coding beside chunks",
    { method: "POST", path: "/categories", headers: { "transfer-encoding": "gzip, chunked" }, body: { name: "dog" } },
    "501 NOT_IMPLEMENTED",
    "Transfer-Encoding",
    { connection: "close" },
  ),
  refused("414: longer than 8 KiB", { method: "GET", path: `/pets?x=${"y".repeat(8192)}` }, "414 URI_TOO_LONG"),
  read("headers of almost 16 KiB", { x: "y".repeat(16_000) }),
  refused(
    "431: more than 16 KiB",
    { method: "GET", path: "/pets", headers: { x: "y".repeat(16_384) } },
    "431 HEADERS_TOO_LARGE",
  ),
];
