/** Content types of calls over a real port: which are taken, and how the others are refused. */
import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { startCategories } from "../fixtures/categories.ts";
import { envelope } from "../fixtures/envelope.ts";
import { Health } from "../gen/health/v1/health_pb.ts";

const CREATE = `/${CategoryService.typeName}/CreateCategory`;
const GET = `/${CategoryService.typeName}/GetCategory`;
const WATCH = `/${Health.typeName}/Watch`;
const json = '{"category":{"name":"dog"}}';
const framed = envelope(Buffer.from(json)).toString("latin1");
const message = Buffer.from(
  toBinary(
    CategoryService.method.createCategory.input,
    create(CategoryService.method.createCategory.input, { category: { name: "dog" } }),
  ),
).toString("latin1");
const binary = envelope(Buffer.from(message, "latin1")).toString("latin1");

const ask = async (path: string, init: RequestInit = {}) => {
  const { url } = await startCategories(async (name) => name);
  const { status, headers, text } = await fetch(url + path, init).then(async (answer) => ({
    status: answer.status,
    headers: answer.headers,
    text: await answer.text(),
  }));
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  return { status, headers, text };
};
const post = (type: string | undefined, body: string, more: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  headers: { ...(type !== undefined && { "content-type": type }), ...more },
  body: new Uint8Array(Buffer.from(body, "latin1")),
});

describe("parameters are read as HTTP has them, and those that mean nothing are ignored", () => {
  test.each([
    ['application/json; charset="utf-8"', json],
    ["application/json;charset=UTF-8", json],
    ["application/json;", json],
    ["application/json ; foo=bar", json],
    ['Application/JSON; foo="a;b"; charset=utf8', json],
    ["application/proto; charset=utf-8", message],
    ["application/grpc-web+proto; charset=utf-8", binary],
    ["application/grpc-web;x=y", binary],
    ['application/grpc-web+json; charset="utf-8"', framed],
  ])("%s", async (type, body) => {
    const { status, text } = await ask(CREATE, post(type, body));
    expect([status, text]).toEqual([200, expect.stringContaining("dog")]);
  });

  test("application/grpc; charset=utf-8", async () => {
    const { url } = await startCategories(async (name) => name);
    const session = connectHttp2(url);
    const type = "application/grpc; charset=utf-8";
    const stream = session.request({ ":method": "POST", ":path": CREATE, "content-type": type, te: "trailers" });
    stream.resume().end(Buffer.from(binary, "latin1"));
    const [trailers] = await once(stream, "trailers");
    session.destroy();
    expect(trailers["grpc-status"]).toBe("0");
  });

  test("a GET has no content, and so no type", async () => {
    const query = "connect=v1&encoding=json&message=%7B";
    expect((await ask(`${GET}?${query}`, { headers: { "content-type": "text/plain" } })).status).toBe(400);
  });
});

describe("what is not taken is refused with what is", () => {
  const TAKEN = "application/json, application/proto, application/grpc-web";
  const refused = { code: "unimplemented", details: [{ debug: { reason: "UNSUPPORTED_MEDIA_TYPE" } }] };

  test("by Connect: application/json; charset=latin1", async () => {
    const { status, headers, text } = await ask(CREATE, post("application/json; charset=latin1", json));
    expect([status, JSON.parse(text)]).toMatchObject([415, refused]);
    expect(JSON.parse(text).message).toContain("charset=utf-8");
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("accept-post")).toMatch(new RegExp(`^${TAKEN}.*application/grpc\\+json$`));
  });

  test.each([
    ["text/plain", TAKEN],
    ["application/xml", TAKEN],
    ["json", TAKEN],
    [undefined, `There is no Content-Type. Send ${TAKEN}`],
  ])("by no protocol, in words: %s", async (type, says) => {
    const { status, headers, text } = await ask(CREATE, post(type, json));
    expect([status, headers.get("content-type"), text]).toEqual([415, "text/plain", expect.stringContaining(says)]);
    expect(headers.get("accept-post")).toMatch(new RegExp(`^${TAKEN}.*application/grpc\\+json$`));
  });

  test.each(["connect=v1&encoding=xml", "encoding=xml", "encoding=", "message=%7B%7D"])("by GET: %s", async (query) => {
    const { status, headers, text } = await ask(`${GET}?${query}`);
    const expected = { ...refused, message: "encoding: must be json or proto" };
    expect([status, JSON.parse(text)]).toMatchObject([415, expected]);
    expect([headers.get("accept-post"), headers.get("cache-control")]).toEqual([null, "no-store"]);
  });

  test.each([
    [CREATE, "application/connect+json", TAKEN],
    [CREATE, "application/connect+proto; charset=utf-8", TAKEN],
    [WATCH, "application/connect+xml", "application/connect+json, application/connect+proto"],
  ])("by a stream of Connect, of %s: %s", async (path, type, says) => {
    const { status, text } = await ask(path, post(type, framed));
    expect([status, text.charCodeAt(0)]).toEqual([200, 2]);
    expect(JSON.parse(text.slice(5))).toMatchObject({ error: refused });
    expect(text).toContain(says);
  });

  test("unary Connect is told what a stream takes", async () => {
    const { status, text } = await ask(WATCH, post("application/json", "{}"));
    expect([status, JSON.parse(text)]).toMatchObject([415, refused]);
    expect(JSON.parse(text).message).toContain("application/connect+json");
  });

  test.each(["application/grpc-web-text", "application/grpc-web-text+proto", "application/grpc-web+xml"])(
    "by gRPC-Web, in trailers alone: %s",
    async (type) => {
      const { status, headers, text } = await ask(CREATE, post(type, binary));
      expect([status, headers.get("content-type"), headers.get("grpc-status"), text]).toEqual([200, type, "12", ""]);
      expect(decodeURIComponent(headers.get("grpc-message") ?? "")).toContain("application/grpc-web+proto");
      expect(headers.get("grpc-status-details-bin")).not.toBeNull();
    },
  );

  test("by gRPC, in one frame", async () => {
    const { url } = await startCategories(async (name) => name);
    const session = connectHttp2(url);
    const stream = session.request({ ":method": "POST", ":path": CREATE, "content-type": "application/grpc+xml" });
    stream.end(Buffer.from(binary, "latin1"));
    const [headers, flags] = await once(stream, "response");
    session.destroy();
    expect(headers).toMatchObject({ ":status": 200, "grpc-status": "12", "x-content-type-options": "nosniff" });
    expect(decodeURIComponent(`${headers["grpc-message"]}`)).toContain("application/grpc+proto");
    expect(flags & constants.NGHTTP2_FLAG_END_STREAM).toBe(constants.NGHTTP2_FLAG_END_STREAM);
  });

  test.each([
    ["PUT", CREATE, "POST"],
    ["GET", CREATE, "POST"],
    ["HEAD", GET, "POST, GET"],
  ])("%s of %s is told by which methods it is called", async (method, path, allow) => {
    const { status, headers } = await ask(`${path}?connect=v1&encoding=json&message=%7B%7D`, { method });
    expect([status, headers.get("allow")]).toEqual([405, allow]);
  });

  test("little of a long type is repeated", async () => {
    const { text } = await ask(CREATE, post(`x${"y".repeat(10_000)}/z`, json));
    expect(text.length).toBeLessThan(1500);
  });
});

describe("a compression that is not taken is refused with those that are", () => {
  test.each([
    ["application/json", "content-encoding", "accept-encoding"],
    ["application/connect+json", "connect-content-encoding", "connect-accept-encoding"],
    ["application/grpc-web+json", "grpc-encoding", "grpc-accept-encoding"],
  ])("%s", async (type, encoding, accepted) => {
    const path = type.includes("connect+") ? WATCH : CREATE;
    const { headers, text } = await ask(path, post(type, framed, { [encoding]: "zstd" }));
    expect(headers.get(accepted)).toBe("gzip,br");
    expect(decodeURIComponent(headers.get("grpc-message") ?? text)).toContain("unknown compression");
  });

  test("gRPC, of a stream", async () => {
    const { url } = await startCategories(async (name) => name);
    const session = connectHttp2(url);
    const type = { "content-type": "application/grpc", "grpc-encoding": "zstd" };
    const stream = session.request({ ":method": "POST", ":path": WATCH, ...type });
    stream.end(envelope(Buffer.alloc(0)));
    const [headers] = await once(stream, "response");
    session.destroy();
    expect(headers["grpc-accept-encoding"]).toBe("gzip,br");
  });

  test("a charset is told where it belongs", async () => {
    const { headers, text } = await ask(CREATE, post("application/json", json, { "content-encoding": "utf-8" }));
    expect(JSON.parse(text).message).toMatch(/utf-8 is a charset.*Content-Type/);
    expect(headers.get("accept-encoding")).toBe("gzip,br");
  });
});
