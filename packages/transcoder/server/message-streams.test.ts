/** Answers that stream messages as they are, in each of their forms. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterEach, describe, expect, test } from "vitest";
import { compileTalk, serviceOf } from "../fixtures/compile.ts";
import { askHttp2 } from "../fixtures/h2.ts";
import { serve } from "../fixtures/server.ts";
import type { TranscoderOptions } from "../index.ts";

const service = serviceOf(compileTalk(), "foreign.talk.v1.TalkService");

type Count = (request: { limit: number }, context: HandlerContext) => AsyncIterable<object>;

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

async function start(count: Count, options: Partial<TranscoderOptions> = {}, http2 = false) {
  server = await serve(service, { count } as never, options, undefined, http2);
  return server.call;
}

const counting: Count = async function* ({ limit }) {
  for (let i = 1; i <= limit; i++) yield { number: BigInt(i), text: `t${i}`, part: { name: `p${i}` } };
};
/** Fails behind its first message, or in its place. */
const failing: Count = async function* ({ limit }) {
  for (let i = 1; i <= limit; i++) yield { number: BigInt(i) };
  throw new ConnectError("no more", Code.ResourceExhausted);
};
const accept = (type: string) => ({ headers: { accept: type } });
const message = (i: number) => `{"number":${i},"text":"t${i}","part":{"name":"p${i}"}}`;
const [LINES, EVENTS, ARRAY] = ["application/x-ndjson", "text/event-stream", "application/json"];

describe("an answer", () => {
  test.each([
    [undefined, LINES],
    ["*/*", LINES],
    ["application/*", LINES],
    [LINES, LINES],
    [ARRAY, ARRAY],
    ["application/json, text/plain, */*", ARRAY],
    ["text/*", EVENTS],
    ["application/json;q=0.1, text/event-stream", EVENTS],
  ])("to Accept: %s is %s", async (type, expected) => {
    const call = await start(counting);
    const { status, headers } = await call("/count?limit=1", type === undefined ? {} : accept(type));
    expect([status, headers.get("content-type")]).toEqual([200, `${expected}; charset=utf-8`]);
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    [LINES, `${message(1)}\n${message(2)}\n`, ""],
    [EVENTS, `data: ${message(1)}\n\ndata: ${message(2)}\n\n`, ""],
    [ARRAY, `[${message(1)},${message(2)}]`, "[]"],
  ])("as %s is the messages, and nothing more", async (type, two, none) => {
    const call = await start(counting);
    expect((await call("/count?limit=2", accept(type))).text).toBe(two);
    expect((await call("/count?limit=0", accept(type))).text).toBe(none);
  });

  test("is one line for each message, whatever takes a character for the end of a line", async () => {
    const call = await start(async function* () {
      yield { text: "a\n\u2028\u0085" };
    });
    expect((await call("/count")).text).toBe('{"number":0,"text":"a\\n\\u2028\\u0085"}\n');
  });

  test("to Accept: image/png there is none", async () => {
    const call = await start(counting);
    expect((await call("/count", accept("image/png"))).record()).toMatchObject({ status: 406 });
  });

  test("to another verb is asked for by a body", async () => {
    const call = await start(counting);
    const headers = { "content-type": "application/json" };
    const { status, text } = await call("/counts", { method: "POST", body: '{"limit":1}', headers });
    expect([status, text]).toEqual([200, `${message(1)}\n`]);
    const wrong = await call("/counts", { method: "POST", body: '{"limit":-1}', headers });
    expect(wrong.status).toBe(400);
    const type = await call("/counts", { method: "POST", body: "a", headers: { "content-type": "text/plain" } });
    expect(type.status).toBe(415);
  });

  test("is of the field that response_body names", async () => {
    const call = await start(counting);
    expect((await call("/counts/2/parts")).text).toBe('{"name":"p1"}\n{"name":"p2"}\n');
  });

  test("begins without a message when there is none in the time of a request", async () => {
    const over = Promise.withResolvers<void>();
    const call = await start(
      async function* () {
        await over.promise;
        yield { text: "late" };
      },
      { limits: { requestMs: 1000 } },
    );
    const answer = await fetch(`http://127.0.0.1:${server.port}/count`);
    expect(answer.status).toBe(200);
    over.resolve();
    expect(await answer.text()).toBe('{"number":0,"text":"late"}\n');
    expect((await call("/count", { method: "HEAD" })).status).toBe(200);
  });

  test("is the same over HTTP/2", async () => {
    await start(counting, {}, true);
    const { head, text, code } = await askHttp2(server.port, { ":path": "/count?limit=2" });
    expect([head[":status"], head["content-type"], text, code]).toEqual([
      200,
      `${LINES}; charset=utf-8`,
      `${message(1)}\n${message(2)}\n`,
      0,
    ]);
  });
});

/** All that comes over a connection for one request, until it ends. */
async function raw(head: string): Promise<string> {
  const socket = connect(server.port, "127.0.0.1");
  socket.write(head);
  return text(socket);
}

const FAILURE = '{"code":"RESOURCE_EXHAUSTED","message":"no more","status":429}';
const brokenOff = [
  [LINES, `{"number":1,"text":""}\n`, `{"error":${FAILURE}}\n`],
  [EVENTS, `data: {"number":1,"text":""}\n\n`, `event: error\ndata: ${FAILURE}\n\n`],
  [ARRAY, `[{"number":1,"text":""}`, ""],
] as const;

describe("a failure", () => {
  test("before the first message has its status", async () => {
    const call = await start(failing);
    for (const type of [LINES, EVENTS, ARRAY])
      expect((await call("/count?limit=0", accept(type))).record()).toEqual(JSON.parse(FAILURE));
  });

  test.each(brokenOff)("after it: %s does not end in good order", async (type, first, last) => {
    await start(failing);
    const answer = await raw(`GET /count?limit=1 HTTP/1.1\r\nhost: a\r\naccept: ${type}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const chunks = answer.slice(answer.indexOf("\r\n\r\n") + 4).split("\r\n");
    expect(chunks.filter((_, i) => i % 2 === 1).join("")).toBe(first + last);
    expect(chunks).not.toContain("0");
    await expect(server.call("/count?limit=1", accept(type))).rejects.toThrow(/terminated/);
  });

  test.each(brokenOff)("after it: %s is reset over HTTP/2", async (type, first, last) => {
    await start(failing, {}, true);
    const { head, text, code } = await askHttp2(server.port, { ":path": "/count?limit=1", accept: type });
    expect([head[":status"], text, code]).toEqual([200, first + last, 2]);
  });

  test("reaches a reader who is slow, behind all that there was", async () => {
    const size = 100_000;
    await start(async function* () {
      for (let i = 0; i < 50; i++) yield { text: "x".repeat(size) };
      throw new ConnectError("no more", Code.ResourceExhausted);
    });
    const socket = connect(server.port, "127.0.0.1").pause();
    socket.write("GET /count HTTP/1.1\r\nhost: a\r\n\r\n");
    await once(socket, "readable");
    const answer = await text(socket);
    expect(answer.match(/x{100000}/g)).toHaveLength(50);
    expect(answer.endsWith(`{"error":${FAILURE}}\n\r\n`)).toBe(true);
  });

  test("is a reset where HTTP/1.0 has nothing else to show it by", async () => {
    await start(failing);
    await expect(raw("GET /count?limit=1 HTTP/1.0\r\n\r\n")).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  test("is what the closing of the server is", async () => {
    await start(async function* (_, { signal }) {
      yield { text: "a" };
      await once(signal, "abort");
    });
    const answer = await fetch(`http://127.0.0.1:${server.port}/count`);
    const closed = server.app.close();
    const chunks = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    await expect(
      (async () => {
        for (;;) {
          const next = await chunks?.read();
          if (!next || next.done) return;
          seen += next.value;
        }
      })(),
    ).rejects.toThrow(/terminated/);
    expect(seen).toMatch(/^\{"number":0,"text":"a"\}\n\{"error":\{"code":"UNAVAILABLE",.*\}\}\n$/);
    await closed;
  });
});

test("the document tells of each form, and of what a line is", async () => {
  const call = await start(counting, { openApi: { title: "Talk" } });
  const document = (await call("/openapi.json")).record() as { paths: Record<string, Record<string, unknown>> };
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
  const item = { $ref: "#/components/schemas/CountResponse" };
  const content = {
    [LINES]: { schema: { type: "string" }, "x-itemSchema": { anyOf: [item, { required: ["error"] }] } },
    [EVENTS]: { schema: { type: "string" }, "x-itemSchema": { properties: { data: { type: "string" } } } },
    [ARRAY]: { schema: { type: "array", items: item } },
  };
  expect(document.paths["/count"]?.get).toMatchObject({ responses: { 200: { content } } });
  expect(document.paths["/counts"]?.post).toMatchObject({ requestBody: { required: true }, responses: { 200: {} } });
});
