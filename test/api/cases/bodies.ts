/** Bodies as text: what counts as JSON, what is ignored, what is refused. */
import { gzipSync } from "node:zlib";
import { expect } from "vitest";
import { type Case, ONLY_HTTP, rule } from "./case.ts";
import type { Shop } from "./shop.ts";

const post = (body: unknown, headers: Record<string, string> = {}) => ({
  method: "POST",
  path: "/categories",
  headers,
  body,
});
const malformed = (name: string, body: string | Buffer) =>
  rule(`not JSON: ${name}`, {
    http: post(body),
    oneEndpoint: ONLY_HTTP.json,
    fails: { http: "400 MALFORMED_JSON" },
  });
const noObject = (text: string) =>
  rule(`JSON, but no object: ${text}`, {
    http: post(text),
    oneEndpoint: ONLY_HTTP.json,
    fails: { http: "400 VALIDATION_FAILED" },
  });
const unsupported = (name: string, headers: Record<string, string>, body: unknown = '{"name":"dog"}') =>
  rule(`415: ${name}`, {
    http: post(body, headers),
    oneEndpoint: ONLY_HTTP.media,
    fails: {
      http: "415 UNSUPPORTED_MEDIA_TYPE",
      headers: { "accept-post": "application/json", "accept-encoding": null, "accept-patch": null },
    },
  });
const packed = (name: string, coding: string, body: unknown, says: string) =>
  rule(`415: ${name}`, {
    http: post(body, { "content-encoding": coding }),
    oneEndpoint: ONLY_HTTP.media,
    fails: {
      http: "415 UNSUPPORTED_MEDIA_TYPE",
      headers: { "accept-encoding": "identity", "accept-post": null, accept: null },
      says,
    },
  });
const supported = (name: string, headers: Record<string, string>) =>
  rule(`taken: ${name}`, {
    http: post('{"name":"dog"}', headers),
    oneEndpoint: ONLY_HTTP.media,
    answers: () => ({ http: { status: 201, body: { id: expect.any(Number), name: "dog" } } }),
  });
const ignored = (name: string, body: string, headers: Record<string, string> = {}) =>
  rule(`ignored: ${name}`, {
    http: post(body, headers),
    oneEndpoint: ONLY_HTTP.json,
    answers: () => ({ http: { status: 201, body: { id: expect.any(Number), name: "dog" } } }),
  });
const strict = (name: string, prefer: string, says: string, body: string) =>
  rule(`strict: ${name}`, {
    http: post(body, { prefer }),
    oneEndpoint: ONLY_HTTP.json,
    fails: { http: "400 UNKNOWN_FIELD", says },
  });
const STRICTLY = { prefer: "handling=strict" };

/** A record of each kind as an answer shows it, with its id. */
const answered: readonly {
  readonly kind: string;
  readonly collection: string;
  readonly given: (shop: Shop) => Promise<{ readonly id: bigint; readonly record: object }>;
}[] = [
  {
    kind: "a pet",
    collection: "/pets",
    given: async (shop) => {
      const { id, name, categoryId } = await shop.pet();
      return { id, record: { id: Number(id), name, categoryId: Number(categoryId), status: "available" } };
    },
  },
  {
    kind: "a category",
    collection: "/categories",
    given: async (shop) => {
      const { id, name } = await shop.category();
      return { id, record: { id: Number(id), name } };
    },
  },
  {
    kind: "an order",
    collection: "/store/orders",
    given: async (shop) => {
      const { id = 0n, quantity } = await shop.order({ quantity: 2 });
      return { id, record: { id: Number(id), quantity, complete: false } };
    },
  },
  {
    kind: "inventory",
    collection: "/store/inventory",
    given: async (shop) => {
      const { id } = await shop.stocked(3);
      return { id, record: { petId: Number(id), quantity: 3, status: "available" } };
    },
  },
];
const sentBack = (method: "PUT" | "PATCH", { kind, collection, given }: (typeof answered)[number]) =>
  rule(`strict: ${method} of ${kind} as it was answered`, {
    given,
    http: ({ id, record }) => ({ method, path: `${collection}/${id}`, headers: STRICTLY, body: record }),
    oneEndpoint: ONLY_HTTP.json,
    answers: ({ record }) => ({ http: { status: 200, body: record } }),
  });
const createdAnew = ({ kind, collection, given }: (typeof answered)[number]) =>
  rule(`strict: POST of ${kind} as it was answered makes another`, {
    given,
    http: ({ record }) => ({ method: "POST", path: collection, headers: STRICTLY, body: record }),
    oneEndpoint: ONLY_HTTP.json,
    answers: ({ record }) => ({ http: { status: 201, body: { ...record, id: expect.any(Number) } } }),
  });
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const patch = (name: string, headers: Record<string, string>) =>
  rule(`PATCH: ${name}`, {
    given: (shop: Shop) => shop.category(),
    http: ({ id }) => ({ method: "PATCH", path: `/categories/${id}`, headers, body: '{"name":"wolf"}' }),
    oneEndpoint: ONLY_HTTP.media,
    answers: ({ id }) => ({ http: { status: 200, body: { id: Number(id), name: "wolf" } } }),
  });

export const bodies: readonly Case[] = [
  malformed("empty", ""),
  malformed("white space", "  \n"),
  malformed("half of it", '{"name":"dog"'),
  malformed("more than it", '{"name":"dog"}{}'),
  malformed("single quotes", "{'name':'dog'}"),
  malformed("no quotes", "{name:1}"),
  malformed("a comma too many", '{"name":"dog",}'),
  malformed("a comment", '{"name":"dog"/* */}'),
  malformed("NaN", '{"name":NaN}'),
  malformed("a leading zero", '{"quantity":01}'),
  malformed("a plus", '{"quantity":+1}'),
  malformed("a bare fraction", '{"quantity":.5}'),
  malformed("a control character in a string", '{"name":"a\u0001b"}'),
  malformed("an unknown escape", '{"name":"\\x41"}'),
  malformed("a form feed between tokens", '{"name":\f"dog"}'),
  malformed("a byte order mark", '\ufeff{"name":"dog"}'),
  malformed("UTF-16", Buffer.from('{"name":"dog"}', "utf16le")),
  malformed("Latin-1", Buffer.from('{"name":"chi\xe9n"}', "latin1")),
  malformed("an overlong encoding", Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d])),
  malformed("a surrogate in UTF-8", Buffer.from('{"name":"\xed\xa0\x80"}', "latin1")),
  malformed("a lone surrogate", '{"name":"\\ud800"}'),
  malformed("a lone surrogate in an unknown member", '{"name":"dog","x":"\\udc00"}'),
  malformed("a lone surrogate in the name of a member", '{"name":"dog","\\ud800":1}'),
  malformed("a member twice", '{"name":"dog","name":"dog"}'),
  malformed("a member twice, once escaped", '{"name":"dog","\\u006eame":"cat"}'),
  malformed("an unknown member twice", '{"name":"dog","x":1,"x":1}'),
  malformed("a member twice within an unknown one", '{"name":"dog","x":[{"y":1,"y":2}]}'),
  malformed("__proto__ twice", '{"name":"dog","__proto__":1,"__proto__":2}'),
  malformed("deeper than 16", nested(17)),
  malformed("deeper than 16 in an unknown member", `{"name":"dog","x":${nested(16)}}`),
  malformed("very deep", nested(20_000)),
  ...["null", "true", "7", '"dog"', "[]", '[{"name":"dog"}]', nested(16)].map(noObject),
  ignored("unknown members", '{"name":"dog","colour":"black","__proto__":{"name":"x"},"constructor":1}'),
  ignored("unknown members, up to a depth of 16", `{"name":"dog","x":${nested(15)}}`),
  ignored("numbers in unknown members, however large", '{"name":"dog","x":1e400,"y":-0}'),
  ignored("the id, which the service assigns", '{"id":"mine","name":"dog"}'),
  ignored("unknown members when asked to be lenient", '{"name":"dog","x":1}', { prefer: "handling=lenient" }),
  ignored("white space around", ' \t\r\n{"name":"dog"}\n'),
  strict("an unknown member", "handling=strict", "colour", '{"name":"dog","colour":"black"}'),
  strict("among other preferences", 'respond-async, handling="strict"; x=1', "colour", '{"name":"dog","colour":1}'),
  strict("__proto__ is no member", "handling=strict", "__proto__", '{"name":"dog","__proto__":1}'),
  rule("strict: the name of a field in the contract is not its JSON name", {
    http: { method: "POST", path: "/pets", headers: STRICTLY, body: { name: "Rex", category_id: 1 } },
    oneEndpoint: ONLY_HTTP.json,
    fails: { http: "400 UNKNOWN_FIELD", says: "category_id" },
  }),
  strict("the tag is a header and no member", "handling=strict", "etag", '{"name":"dog","etag":"1"}'),
  strict("a member of another kind of record", "handling=strict", "petId", '{"name":"dog","petId":1}'),
  ...answered.flatMap((one) => [sentBack("PUT", one), sentBack("PATCH", one)]),
  ...answered.filter(({ kind }) => kind !== "inventory").map(createdAnew),
  rule("strict: what only answers have is not looked at", {
    http: post('{"id":"mine","name":"dog"}', STRICTLY),
    oneEndpoint: ONLY_HTTP.json,
    answers: () => ({ http: { status: 201, body: { id: expect.any(Number), name: "dog" } } }),
  }),
  supported("utf-8 said so", { "content-type": "application/json; charset=utf-8" }),
  supported("in any case, quoted", { "content-type": 'Application/JSON;charset="UTF-8"' }),
  supported("other parameters", { "content-type": "application/json; profile=x" }),
  supported("identity is no encoding", { "content-type": "application/json", "content-encoding": "identity" }),
  unsupported("no type", { "content-type": "" }),
  unsupported("another type", { "content-type": "text/plain" }),
  unsupported("a form", { "content-type": "application/x-www-form-urlencoded" }, "name=dog"),
  unsupported("a merge patch is for PATCH", { "content-type": "application/merge-patch+json" }),
  unsupported("another charset", { "content-type": "application/json; charset=latin1" }),
  unsupported("no type at all", { "content-type": "json" }),
  packed("gzip", "gzip", gzipSync('{"name":"dog"}'), "compressed"),
  packed("an unknown encoding", "rot13", '{"name":"dog"}', "compressed"),
  packed("a charset for an encoding", "UTF-8", '{"name":"dog"}', "utf-8 is a charset"),
  rule("415 of a PUT carries Accept", {
    http: { method: "PUT", path: "/categories/1", headers: { "content-type": "text/plain" }, body: "{}" },
    oneEndpoint: ONLY_HTTP.media,
    fails: { http: "415 UNSUPPORTED_MEDIA_TYPE", headers: { accept: "application/json", "accept-post": null } },
  }),
  rule("415 of a PATCH carries Accept-Patch", {
    http: { method: "PATCH", path: "/categories/1", headers: { "content-type": "text/plain" }, body: "{}" },
    oneEndpoint: ONLY_HTTP.media,
    fails: {
      http: "415 UNSUPPORTED_MEDIA_TYPE",
      headers: { "accept-patch": expect.stringMatching(/application\/merge-patch\+json.*application\/json/) },
    },
  }),
  patch("application/merge-patch+json", { "content-type": "application/merge-patch+json" }),
  patch("application/json means the same", { "content-type": "application/json" }),
  rule("an empty body is MALFORMED_JSON also without a type", {
    http: { method: "POST", path: "/categories" },
    oneEndpoint: ONLY_HTTP.json,
    fails: { http: "400 MALFORMED_JSON" },
  }),
  rule("64 KiB are taken", {
    http: post(`{"name":"dog"${" ".repeat(65536 - 14)}}`),
    oneEndpoint: ONLY_HTTP.json,
    answers: () => ({ http: { status: 201, body: { id: expect.any(Number), name: "dog" } } }),
  }),
  rule("413: more than 64 KiB", {
    http: post(`{"name":"dog"${" ".repeat(65536 - 13)}}`),
    oneEndpoint: ONLY_HTTP.json,
    fails: { http: "413 PAYLOAD_TOO_LARGE" },
  }),
  rule("413: more than 64 KiB without a length", {
    http: post(" ".repeat(65537), { "transfer-encoding": "chunked" }),
    oneEndpoint: ONLY_HTTP.json,
    fails: { http: "413 PAYLOAD_TOO_LARGE" },
  }),
];
