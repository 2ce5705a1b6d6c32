/** Streams of requests that are answered once. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Code, ConnectError } from "@connectrpc/connect";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterEach, describe, expect, test, vi } from "vitest";
import { compileTalk, serviceOf } from "../fixtures/compile.ts";
import { askHttp2 } from "../fixtures/h2.ts";
import { serve } from "../fixtures/server.ts";
import type { TranscoderOptions } from "../index.ts";

const service = serviceOf(compileTalk(), "foreign.talk.v1.TalkService");

interface Added {
  readonly name: string;
  readonly number: bigint;
  readonly factor: number;
}
interface Part {
  readonly name: string;
  readonly note: string;
  readonly content?: { readonly contentType: string; readonly data: Uint8Array };
}

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

async function start(implementation: object, options: Partial<TranscoderOptions> = {}, http2 = false) {
  server = await serve(service, implementation as never, options, undefined, http2);
  return server.call;
}

async function sum(numbers: AsyncIterable<Added>) {
  let [total, name, count] = [0n, "", 0];
  for await (const one of numbers) {
    total += one.number * BigInt(one.factor || 1);
    name = one.name;
    count++;
  }
  return { name, sum: total, text: `${count}` };
}
const [LINES, JSON_TYPE] = ["application/x-ndjson", "application/json"];
const post = (body: string, type: string | undefined): RequestInit => ({
  method: "POST",
  body: Buffer.from(body),
  ...(type && { headers: { "content-type": type } }),
});

describe("a stream of requests", () => {
  test.each([
    [LINES, '{"number":1}\n{"number":9007199254740993}\n'],
    [LINES, '\n{"number":1}\r\n\n{"number":9007199254740993}'],
    [JSON_TYPE, '[{"number":1},{"number":9007199254740993}]'],
    [JSON_TYPE, '{"number":1}\n{"number":9007199254740993}'],
  ])("as %s is answered once: %j", async (type, body) => {
    const call = await start({ sum });
    const { status, text, headers } = await call("/sums/a", post(body, type));
    expect([status, headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
    expect(text).toMatch(/^\{"name":"a","sum":"?9007199254740994"?,"text":"2"\}$/);
  });

  test("may be empty", async () => {
    const call = await start({ sum });
    for (const [body, type] of [
      ["", LINES],
      ["[]", JSON_TYPE],
    ] as const)
      expect((await call("/sums/a", post(body, type))).text).toContain('"text":"0"');
    expect((await call("/sums/a", { method: "POST" })).text).toContain('"text":"0"');
  });

  test("has its path and query in each message, and the body in a field", async () => {
    const call = await start({ sum });
    expect((await call("/sums/a/numbers?factor=3", post("1\n2\n", LINES))).text).toMatch(/^"?9"?$/);
  });

  test("is one message where the rule has no body", async () => {
    const call = await start({ sum });
    expect((await call("/sums/a?number=4")).text).toMatch(/"sum":"?4"?,"text":"1"/);
  });

  test("is the same over HTTP/2", async () => {
    await start({ sum }, {}, true);
    const head = { ":method": "POST", ":path": "/sums/a", "content-type": LINES };
    const { text, code } = await askHttp2(server.port, head, '{"number":1}\n{"number":2}\n');
    expect([text, code]).toEqual([expect.stringMatching(/"sum":"?3"?,"text":"2"/), 0]);
  });

  test.each([
    ['{"number":1}\n{"number":-1}\n', LINES, 400, "Message 2: number: must be greater than or equal to 0"],
    ['{"number":1}\n{"number"', LINES, 400, "Message 2: The body is not JSON: it ends too early."],
    ["[1,", JSON_TYPE, 400, "Message 1: The body must be an object"],
    ["[{},", JSON_TYPE, 400, "The array does not end."],
    [`{"name":"${"x".repeat(1000)}"}`, LINES, 413, "A message of the body is larger than 1000 bytes."],
    ["{}", "text/plain", 415, expect.stringContaining("application/x-ndjson or application/json")],
  ])("is refused where it is wrong: %j", async (body, type, status, message) => {
    const ends: boolean[] = [];
    const call = await start(
      {
        async sum(numbers: AsyncIterable<Added>) {
          await sum(numbers);
          ends.push(true);
          return {};
        },
      },
      { limits: { bodyBytes: 1000 } },
    );
    expect((await call("/sums/a", post(body, type))).record()).toMatchObject({ status, message });
    expect(ends).toEqual([]);
  });

  test("has no limit as a whole, and is asked for no faster than it is taken", async () => {
    const call = await start({ sum }, { limits: { bodyBytes: 1000 } });
    const body = `{"number":1}\n`.repeat(50_000);
    expect((await call("/sums/a", post(body, LINES))).text).toContain('"text":"50000"');
  });

  test("that fails is an error, also where it has not ended, and the connection goes on", async () => {
    await start({
      async sum(numbers: AsyncIterable<Added>) {
        for await (const { number } of numbers) if (number === 1n) break;
        throw new ConnectError("enough", Code.FailedPrecondition);
      },
    });
    const socket = connect(server.port, "127.0.0.1");
    const chunk = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n`;
    socket.write(
      `POST /sums/a HTTP/1.1\r\nhost: a\r\ncontent-type: ${LINES}\r\ntransfer-encoding: chunked\r\n\r\n${chunk('{"number":1}\n')}`,
    );
    let seen = "";
    socket.setEncoding("utf8").on("data", (piece) => {
      seen += piece;
    });
    while (!seen.includes("enough")) await new Promise(setImmediate);
    expect(seen).toMatch(/^HTTP\/1\.1 400 /);
    socket.write(`${chunk('{"number":2}\n')}0\r\n\r\nGET /nothing HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    await new Promise((resolve) => socket.once("close", resolve));
    expect(seen).toMatch(/HTTP\/1\.1 404 /);
  });

  test("that fails before it is read leaves the connection as it is, over HTTP/2 too", async () => {
    const refusing = {
      async sum() {
        throw new ConnectError("not now", Code.FailedPrecondition);
      },
    };
    const body = '{"number":1}\n'.repeat(20_000);
    await start(refusing);
    const socket = connect(server.port, "127.0.0.1");
    socket.write(
      `POST /sums/a HTTP/1.1\r\nhost: a\r\ncontent-type: ${LINES}\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(`${body}GET /nothing HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 [\s\S]*not now[\s\S]*HTTP\/1\.1 404 /);
    await server.app.close();
    await start(refusing, {}, true);
    const head = { ":method": "POST", ":path": "/sums/a", "content-type": LINES };
    const answer = await askHttp2(server.port, head, body);
    expect([answer.head[":status"], answer.code]).toEqual([400, 0]);
    expect(answer.text).toContain("not now");
  });

  test("that is silent for longer than a request may take is ended", async () => {
    await start({ sum }, { limits: { requestMs: 1000 } });
    const socket = connect(server.port, "127.0.0.1");
    socket.write(
      `POST /sums/a HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: ${LINES}\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });

  test("leaves the limit of other requests as it is", async () => {
    await start({ echo: () => ({}) }, { limits: { requestMs: 1000 } });
    const socket = connect(server.port, "127.0.0.1");
    socket.write("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\na");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });

  test("may take longer than a request while something comes", async () => {
    await start({ sum }, { limits: { requestMs: 2000 } });
    let count = 0;
    const body = new ReadableStream({
      async start(controller) {
        // Silent for far less than it may be, on whatever machine.
        for (const end = Date.now() + 4800; Date.now() < end; count++) {
          controller.enqueue(Buffer.from('{"number":1}\n'));
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        controller.close();
      },
    });
    const answer = await server.call("/sums/a", {
      method: "POST",
      body,
      headers: { "content-type": LINES },
      duplex: "half",
    } as RequestInit);
    expect(answer.text).toContain(`"text":"${count}"`);
  });

  test("ends the call when its caller leaves, which is no end of the stream", async () => {
    const ended = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<void>();
    await start({
      async sum(numbers: AsyncIterable<Added>) {
        try {
          for await (const _ of numbers) begun.resolve();
          ended.resolve("whole");
        } catch {
          ended.resolve("cut short");
        }
        return {};
      },
    });
    const socket = connect(server.port, "127.0.0.1");
    socket.write(
      `POST /sums/a HTTP/1.1\r\nhost: a\r\ncontent-type: ${LINES}\r\ntransfer-encoding: chunked\r\n\r\nd\r\n{"number":1}\n\r\n`,
    );
    await begun.promise;
    socket.destroy();
    expect(await ended.promise).toBe("cut short");
  });
});

describe("an upload", () => {
  async function upload(parts: AsyncIterable<Part>) {
    const seen: Part[] = [];
    for await (const part of parts) seen.push(part);
    const [first, ...rest] = seen;
    return {
      name: first?.name,
      note: `${first?.note}${rest.map(({ name, note, content }) => name + note + content?.contentType).join("")}`,
      type: first?.content?.contentType,
      size: BigInt(seen.reduce((size, { content }) => size + (content?.data.length ?? 0), 0)),
    };
  }

  test("is its bytes as they come; the first message says the rest", async () => {
    const call = await start({ upload });
    const body = Buffer.alloc(300_000);
    const headers = { "content-type": "image/png" };
    expect((await call("/uploads/a?note=n", { method: "PUT", body, headers })).record()).toEqual({
      name: "a",
      note: "n",
      type: "image/png",
      size: 300_000,
    });
    expect((await call("/uploads/a?note=n", { method: "PUT" })).record()).toMatchObject({ name: "a", size: 0 });
    expect((await call("/uploads/abcdefghijk", { method: "PUT", body, headers })).status).toBe(400);
    const packed = { "content-type": "image/png", "content-encoding": "gzip" };
    expect((await call("/uploads/a", { method: "PUT", body, headers: packed })).status).toBe(415);
  });
});

test("a server that closes does not wait for the connection of a refused request", async () => {
  await start({});
  const socket = connect(server.port, "127.0.0.1");
  const closed = once(socket, "close");
  socket.write(
    "PUT /uploads/abcdefghijk HTTP/1.1\r\nhost: a\r\ncontent-type: image/png\r\ncontent-length: 8\r\n\r\nhalf",
  );
  await once(socket, "data");
  const close = server.app.close();
  await vi.waitUntil(() => !server.app.server.listening, { timeout: 50_000 });
  socket.write("rest");
  await close;
  await closed;
});

test("a request that was injected has no connection to close", async () => {
  await start({});
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  try {
    const { statusCode } = await server.app.inject({ method: "POST", url: "/sums/a", payload: "?" });
    expect(statusCode).toBe(501);
    vi.advanceTimersByTime(10_000); // throws what a timer throws
  } finally {
    vi.useRealTimers();
  }
});

test("the document tells of what a body is made of", async () => {
  const call = await start({}, { openApi: { title: "Talk" } });
  const document = (await call("/openapi.json")).record() as { paths: Record<string, Record<string, unknown>> };
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
  const item = { type: "object", properties: { number: {}, factor: {} } };
  const content = {
    [LINES]: { schema: { type: "string" }, "x-itemSchema": item },
    [JSON_TYPE]: { schema: { type: "array", items: item } },
  };
  expect(document.paths["/sums/{name}"]?.post).toMatchObject({
    requestBody: { required: true, content },
    responses: { 200: { content: { [JSON_TYPE]: { schema: { $ref: "#/components/schemas/SumResponse" } } } } },
  });
  expect(document.paths["/chats/{name}"]?.post).toMatchObject({
    requestBody: { content },
    responses: { 200: { content: { [LINES]: {} } } },
  });
  expect(document.paths["/uploads/{name}"]?.put).toMatchObject({ requestBody: { content: { "*/*": {} } } });
});
