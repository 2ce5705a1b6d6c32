/** What passes between the headers of HTTP and the metadata of RPCs, both ways. */
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { compileLibrary, compileNews, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import type { TranscoderOptions } from "../index.ts";
import { requestMetadata, responseMetadata } from "./metadata.ts";

const service = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");

let server: Awaited<ReturnType<typeof serve>>;
let seen = new Headers();
afterEach(() => server?.app.close());

async function start(options: Partial<TranscoderOptions>, answer: (context: HandlerContext) => void = () => {}) {
  const getBook = ({ isbn }: { isbn: bigint }, context: HandlerContext) => {
    seen = context.requestHeader;
    answer(context);
    return { isbn };
  };
  server = await serve(service, { getBook } as object, options);
  return (headers: Record<string, string> = {}) => server.call("/books/1", { headers });
}

const SENT = {
  authorization: "Bearer t",
  cookie: "a=1",
  "x-tenant": "acme",
  "grpc-metadata-color": "red",
};

test("by default a service gets the request's id and Authorization, and a caller no metadata", async () => {
  const call = await start({}, ({ responseHeader }) => responseHeader.set("x-cost", "3"));
  const { headers } = await call(SENT);
  expect(seen.get("authorization")).toBe("Bearer t");
  expect(seen.get("x-request-id")).toBe(headers.get("x-request-id"));
  for (const name of ["cookie", "x-tenant", "color", "grpc-metadata-color"]) expect(seen.get(name)).toBeNull();
  expect([...headers.keys()].filter((name) => name.includes("cost"))).toEqual([]);
});

test("callHeaders says it all instead", async () => {
  const call = await start({ callHeaders: () => ({ "x-mine": "1" }) });
  await call(SENT);
  expect([seen.get("x-mine"), seen.get("authorization"), seen.get("x-request-id")]).toEqual(["1", null, null]);
});

test("headers on the lists pass, by any case", async () => {
  const call = await start(
    { allowHeaders: ["X-Tenant", "Cookie"], allowResponseHeaders: ["X-Cost", "Set-Cookie", "X-Late"] },
    ({ responseHeader, responseTrailer }) => {
      responseHeader.append("set-cookie", "a=1");
      responseHeader.append("set-cookie", "b=2, c");
      responseHeader.set("x-cost", "3");
      responseHeader.set("x-secret", "s");
      responseTrailer.set("x-late", "4");
    },
  );
  const { headers } = await call(SENT);
  expect([seen.get("x-tenant"), seen.get("cookie"), seen.get("color")]).toEqual(["acme", "a=1", null]);
  expect(headers.getSetCookie()).toEqual(["a=1", "b=2, c"]);
  expect([headers.get("x-cost"), headers.get("x-late"), headers.get("x-secret")]).toEqual(["3", "4", null]);
});

test("Grpc-Metadata-* is metadata, and metadata is Grpc-Metadata-* and Grpc-Trailer-*, of errors, too", async () => {
  const call = await start({ grpcMetadata: true }, ({ responseHeader, responseTrailer, requestHeader }) => {
    responseHeader.set("x-cost", "3");
    responseHeader.set("x-key-bin", "AQI");
    responseTrailer.set("x-late", "4");
    if (requestHeader.has("fail")) throw new ConnectError("no", Code.NotFound, { "x-why": "5" });
  });
  const { headers } = await call({ ...SENT, "grpc-metadata-key-bin": "AQI=, Aw" });
  expect([seen.get("color"), seen.get("key-bin"), seen.get("x-tenant")]).toEqual(["red", "AQI=, Aw", null]);
  expect(headers.get("grpc-metadata-x-cost")).toBe("3");
  expect(headers.get("grpc-metadata-x-key-bin")).toBe("AQI");
  expect(headers.get("grpc-trailer-x-late")).toBe("4");
  expect([...headers.keys()].filter((name) => /^grpc-.*(content|grpc|connect|encoding)/.test(name))).toEqual([]);
  const failed = await call({ "grpc-metadata-fail": "1" });
  expect([failed.status, failed.headers.get("grpc-metadata-x-why")]).toEqual([404, "5"]);
});

test("metadata that no header can have costs nobody the answer", async () => {
  const call = await start({ grpcMetadata: true, allowResponseHeaders: ["x-odd"] }, ({ responseHeader }) =>
    responseHeader.set("x-odd", "a\x01b"),
  );
  const { status, headers } = await call();
  expect([status, headers.get("x-odd"), headers.get("grpc-metadata-x-odd")]).toEqual([200, "a%01b", "a%01b"]);
});

test.each([
  ["grpc-metadata-te", "x", "te can't be set by a caller"],
  ["grpc-metadata-grpc-timeout", "1S", "grpc-timeout can't be set by a caller"],
  ["grpc-metadata-x-request-id", "1", "x-request-id can't be set by a caller"],
  ["grpc-metadata-", "1", "does not end in a name of metadata"],
  ["grpc-metadata-a'b", "1", "does not end in a name of metadata"],
  ["grpc-metadata-authorization", "1", "is given as authorization, too"],
  ["grpc-metadata-x", "\u00e4", "must be ASCII"],
  ["grpc-metadata-x-bin", "a_-b", "must be base64"],
])("%s: %s is an error", async (name, value, problem) => {
  const call = await start({ grpcMetadata: true });
  const { status, text } = await call({ authorization: "a", [name]: value });
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject({ code: "INVALID_HEADER", message: `${name}: ${problem}` });
});

test("metadata may have any name that objects have, too", () => {
  const read = requestMetadata({ grpcMetadata: true });
  expect(Object.entries(read({ "grpc-metadata-constructor": "a" }))).toEqual([["constructor", "a"]]);
  // Headers of a call are an object, in which this one would not be one of its own.
  expect(() => read({ "grpc-metadata-__proto__": "b" })).toThrow("does not end in a name of metadata");
});

test.each([
  ["Host", "allowHeaders: Host belongs to the connection or the protocol"],
  ["grpc-timeout", "allowHeaders: grpc-timeout belongs to the connection or the protocol"],
  ["X-Request-Id", "allowHeaders: X-Request-Id is set by the transcoder itself"],
  ["a b", 'allowHeaders: "a b" is no name of metadata: letters, digits, "_", "." and "-"'],
])("%s can't be on a list", (name, message) => {
  expect(() => requestMetadata({ allowHeaders: [name] })).toThrow(message);
  expect(() => responseMetadata({ allowResponseHeaders: [name] })).toThrow(/^allowResponseHeaders: /);
});

test("an answer that is shared is shared by those whose headers were passed on alike", async () => {
  let calls = 0;
  server = await serve(
    service,
    { getBook: ({ isbn }: { isbn: bigint }) => ({ isbn, title: `call ${++calls}` }) } as object,
    { answerDependsOn: () => "", allowHeaders: ["x-tenant"] },
  );
  const titles = await Promise.all(
    ["a", "a", "b"].map(async (tenant) => (await server.call("/books/1", { headers: { "x-tenant": tenant } })).text),
  );
  expect(titles[2]).not.toBe(titles[0]);
});

test("a stream begins with the metadata with which its answer begins, and bad metadata is no fault of the service's", async () => {
  const news = serviceOf(compileNews(), "foreign.news.v1.NewsService");
  async function* watchBooks(_: unknown, { responseHeader }: HandlerContext) {
    responseHeader.set("x-cost", "3");
    yield { place: "p1" };
  }
  server = await serve(news, { watchBooks } as object, { grpcMetadata: true });
  const { status, headers } = await server.call("/shelves/1/news");
  expect([status, headers.get("grpc-metadata-x-cost")]).toEqual([200, "3"]);
  expect((await server.call("/shelves/1/news", { headers: { "grpc-metadata-te": "x" } })).status).toBe(400);
});
