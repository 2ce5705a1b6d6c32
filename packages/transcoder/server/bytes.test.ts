/** Bodies and answers that are bytes of any type, whole and in parts. */
import { Code, ConnectError } from "@connectrpc/connect";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterEach, describe, expect, test } from "vitest";
import { compileTalk, serviceOf } from "../fixtures/compile.ts";
import { askHttp2 } from "../fixtures/h2.ts";
import { serve } from "../fixtures/server.ts";
import type { TranscoderOptions } from "../index.ts";

const service = serviceOf(compileTalk(), "foreign.talk.v1.TalkService");

interface HttpBody {
  readonly contentType: string;
  readonly data: Uint8Array;
}
interface File {
  readonly name: string;
  readonly content?: HttpBody;
  readonly note: string;
}

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

async function start(implementation: object, options: Partial<TranscoderOptions> = {}, http2 = false) {
  server = await serve(service, implementation as never, options, undefined, http2);
  return server.call;
}

const bytes = (...values: number[]) => Uint8Array.from(values);
const received = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers });
  const { status, headers: fields } = response;
  return { status, type: fields.get("content-type"), data: [...new Uint8Array(await response.arrayBuffer())] };
};

describe("a body", () => {
  const putFile = ({ name, content, note }: File) => ({
    name,
    note,
    type: content?.contentType ?? "none",
    size: BigInt(content?.data.length ?? -1),
  });

  test.each([
    ["image/png", bytes(0, 255, 13, 10)],
    ["application/json", bytes(0x7b)],
    ["text/plain; charset=latin1", bytes(0xe9)],
  ])("of %s is passed on as it is", async (type, body) => {
    const call = await start({ putFile });
    const { status, text } = await call("/files/a?note=n", { method: "PUT", body, headers: { "content-type": type } });
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({ name: "a", type, size: body.length, note: "n" });
  });

  test("without a type, or without anything, is one too", async () => {
    const call = await start({ putFile });
    expect((await call("/files/a", { method: "PUT", body: bytes(1, 2) })).record()).toMatchObject({
      type: "",
      size: 2,
    });
    expect((await call("/files/a", { method: "PUT" })).record()).toMatchObject({ type: "", size: 0 });
  });

  test("that is compressed or too large is refused, as is what is wrong beside it", async () => {
    const call = await start({ putFile }, { limits: { bodyBytes: 10 } });
    const put = (path: string, body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
      call(path, { method: "PUT", body, headers }).then(({ status }) => status);
    expect(await put("/files/a", bytes(1), { "content-encoding": "gzip" })).toBe(415);
    expect(await put("/files/a", new Uint8Array(11))).toBe(413);
    expect(await put("/files/abcdefghijk", bytes(1))).toBe(400);
  });
});

describe("an answer", () => {
  test.each([
    ["image/png", "image/png"],
    ["text/html", "text/html"],
    ["application/json", "application/json"],
    ["", "application/octet-stream"],
  ])("of %j is bytes of that type", async (contentType, type) => {
    await start({ getFile: () => ({ contentType, data: bytes(0, 255) }) });
    for (const accept of ["*/*", "image/png", "application/pdf"])
      expect(await received("/files/a", { accept })).toEqual({ status: 200, type, data: [0, 255] });
  });

  test("of a field is that of the field, and empty without it", async () => {
    const content = { contentType: "text/csv", data: bytes(1) };
    await start({ getPart: ({ name }: File) => (name === "a" ? { content } : {}) });
    expect(await received("/parts/a")).toEqual({ status: 200, type: "text/csv", data: [1] });
    expect(await received("/parts/b")).toEqual({ status: 200, type: "application/octet-stream", data: [] });
  });

  test("goes both ways", async () => {
    const call = await start({ echo: (body: HttpBody) => body });
    const { text, headers } = await call("/echo", { method: "POST", body: "a b", headers: { "content-type": "x/y" } });
    expect([text, headers.get("content-type")]).toEqual(["a b", "x/y"]);
  });

  test("of a type that no header can hold is the service's fault", async () => {
    await start({ getFile: () => ({ contentType: "a\r\nset-cookie: b" }) });
    expect((await received("/files/a")).status).toBe(502);
  });
});

describe("a download", () => {
  const parts = async function* ({ name }: File) {
    yield { contentType: "image/png", data: bytes(1, 2) };
    yield { data: bytes() };
    yield { contentType: "text/plain", data: bytes(3) };
    if (name === "broken") throw new ConnectError("gone", Code.DataLoss);
  };

  test("is the parts with nothing between them, of the type of the first", async () => {
    await start({ download: parts });
    expect(await received("/downloads/a", { accept: "text/event-stream" })).toEqual({
      status: 200,
      type: "image/png",
      data: [1, 2, 3],
    });
  });

  test("of nothing is empty", async () => {
    await start({ async *download() {} });
    expect(await received("/downloads/a")).toEqual({ status: 200, type: "application/octet-stream", data: [] });
  });

  test("that fails has a status at its beginning, and no good end behind it", async () => {
    const call = await start({ download: parts });
    await expect(received("/downloads/broken")).rejects.toThrow(/terminated/);
    await server.app.close();
    await start({ download: parts }, {}, true);
    const { head, text, code } = await askHttp2(server.port, { ":path": "/downloads/broken" });
    expect([head["content-type"], text, code]).toEqual(["image/png", "\u0001\u0002\u0003", 2]);
    await server.app.close();
    await start({
      async *download() {
        yield* [];
        throw new ConnectError("none", Code.NotFound);
      },
    });
    expect((await received("/downloads/a")).status).toBe(404);
    expect(call).toBeDefined();
  });

  test("has no type before its first part, so that it does not begin without", async () => {
    const over = Promise.withResolvers<void>();
    await start(
      {
        async *download() {
          yield* [];
          await over.promise;
        },
      },
      { limits: { requestMs: 1000 } },
    );
    expect((await received("/downloads/a")).status).toBe(504);
    over.resolve();
  });
});

test("the document tells of bytes", async () => {
  const call = await start({}, { openApi: { title: "Talk" } });
  const document = (await call("/openapi.json")).record() as { paths: Record<string, Record<string, unknown>> };
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
  const content = { "*/*": { schema: { type: "string", format: "binary" } } };
  expect(document.paths["/echo"]?.post).toMatchObject({ requestBody: { content }, responses: { 200: { content } } });
  expect(document.paths["/downloads/{name}"]?.get).toMatchObject({ responses: { 200: { content } } });
  expect(JSON.stringify(document)).not.toContain("HttpBody");
});
