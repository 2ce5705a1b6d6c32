/** Streaming RPCs over HTTP: from the request to the end of the events. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { Validator } from "@seriousme/openapi-schema-validator";
import { EventSource } from "eventsource";
import { afterEach, describe, expect, test } from "vitest";
import { compileNews, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import { HttpError, type TranscoderOptions } from "../index.ts";

const service = serviceOf(compileNews(), "foreign.news.v1.NewsService");

interface Asked {
  readonly shelf: bigint;
  readonly isbn: readonly bigint[];
  readonly after: string;
}
type Watch = (request: Asked, context: HandlerContext) => AsyncIterable<object>;

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

async function start(watchBooks: Watch, options: Partial<TranscoderOptions> = {}) {
  server = await serve(service, { watchBooks } as never, options);
  return server.call;
}

const lent = (isbn: number, place = `p${isbn}`) => ({
  place,
  news: { case: "lent", value: { type: "books.lent", isbn: BigInt(isbn), to: "Ann" } },
});
const lentText = (isbn: number) =>
  `id: p${isbn}\nevent: books.lent\ndata: {"type":"books.lent","isbn":${isbn},"to":"Ann"}\n\n`;
const HEAD = "retry: 3000\n\n";
const endless = ({ signal }: HandlerContext) => (signal.aborted ? undefined : once(signal, "abort"));

const one: Watch = async function* () {
  yield lent(1);
};

describe("an answer", () => {
  test("is a stream of events that nobody keeps", async () => {
    const call = await start(one);
    const { status, headers, text } = await call("/shelves/1/news");
    expect([status, text]).toEqual([200, HEAD + lentText(1)]);
    expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-accel-buffering")).toBe("no");
    expect(headers.get("vary")).toBe("Accept");
    expect(headers.get("x-request-id")).toMatch(/^[\da-f]{32}$/);
  });

  test.each([
    [undefined, "text/event-stream"],
    ["*/*", "text/event-stream"],
    ["text/*", "text/event-stream"],
    ["application/x-ndjson", "application/x-ndjson"],
    ["application/x-ndjson, */*", "application/x-ndjson"],
    ["application/x-ndjson;q=0.5, text/event-stream", "text/event-stream"],
    ["text/event-stream;q=0.5, application/*", "application/x-ndjson"],
    ["text/event-stream, application/x-ndjson", "text/event-stream"],
    ["text/event-stream; charset=utf-8", "text/event-stream"],
    ['application/x-ndjson;charset="UTF-8", text/event-stream;q=0.5', "application/x-ndjson"],
  ])("to Accept: %s is %s", async (accept, type) => {
    const call = await start(one);
    const answer = await call("/shelves/1/news", accept === undefined ? {} : { headers: { accept } });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, `${type}; charset=utf-8`]);
  });

  test.each(["application/json", "text/event-stream;q=0", "image/png"])(
    "to Accept: %s there is none",
    async (accept) => {
      const call = await start(one);
      expect((await call("/shelves/1/news", { headers: { accept } })).record()).toEqual({
        code: "NOT_ACCEPTABLE",
        message: "The answer is text/event-stream or application/x-ndjson; the header Accept allows neither.",
        status: 406,
      });
    },
  );

  test("as lines of JSON says the same", async () => {
    const call = await start(async function* () {
      yield lent(1);
      yield { place: "p2", alive: true };
    });
    const { text } = await call("/shelves/1/news", { headers: { accept: "application/x-ndjson" } });
    expect(text.split("\n")).toEqual([
      '{"id":"p1","event":"books.lent","data":{"type":"books.lent","isbn":1,"to":"Ann"}}',
      '{"id":"p2"}',
      "",
    ]);
  });

  test("comes as it is made: each event is sent before there is another, beyond the time of a request", async () => {
    const steps = [1, 2, 3].map(() => Promise.withResolvers<void>());
    await start(
      async function* () {
        for (const [i, { promise }] of steps.entries()) {
          await promise;
          yield lent(i + 1);
        }
      },
      { limits: { requestMs: 1000 } },
    );
    const response = await fetch(`http://127.0.0.1:${server.port}/shelves/1/news`);
    const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    for (const [i, { resolve }] of steps.entries()) {
      resolve();
      while (!seen.endsWith(lentText(i + 1))) seen += (await chunks?.read())?.value;
    }
    expect(seen).toBe(HEAD + lentText(1) + lentText(2) + lentText(3));
    await chunks?.cancel();
  });

  test("begins without an event when there is none in the time of a request", async () => {
    await start(
      async function* (_, context) {
        yield* [];
        await endless(context);
      },
      { limits: { requestMs: 1000 } },
    );
    const response = await fetch(`http://127.0.0.1:${server.port}/shelves/1/news`);
    expect(response.status).toBe(200);
    const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await chunks?.read())?.value).toBe(HEAD);
    await chunks?.cancel();
  });

  test.each([
    ["/shelves/1/news?after=p7", {}, '{"id":"p7"}\n'],
    ["/shelves/1/news?after=p7", { "last-event-id": "p8" }, '{"id":"p8"}\n'],
    ["/shelves/1/news", {}, "{}\n"],
  ])("as lines of JSON begins then with where it goes on: %s %j", async (path, headers, begins) => {
    await start(
      async function* (_, context) {
        yield* [];
        await endless(context);
      },
      { limits: { requestMs: 1000 } },
    );
    const accept = "application/x-ndjson";
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { ...headers, accept } });
    const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await chunks?.read())?.value).toBe(begins);
    await chunks?.cancel();
  });

  test("to HTTP/1.0 ends with the connection", async () => {
    await start(one);
    const socket = connect(server.port, "127.0.0.1");
    socket.end("GET /shelves/1/news HTTP/1.0\r\n\r\n");
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(/\r\nConnection: close\r\n/i);
    expect(answer).not.toMatch(/\r\nTransfer-Encoding:/i);
    expect(answer.slice(answer.indexOf("\r\n\r\n") + 4)).toBe(HEAD + lentText(1));
  });

  test("to HEAD is that to GET without events, and ends the RPC", async () => {
    const left = Promise.withResolvers<void>();
    const call = await start(async function* (_, context) {
      context.signal.addEventListener("abort", () => left.resolve());
      yield lent(1);
      await endless(context);
    });
    const { status, headers, text } = await call("/shelves/1/news", { method: "HEAD" });
    expect([status, text, headers.get("content-type")]).toEqual([200, "", "text/event-stream; charset=utf-8"]);
    expect(headers.get("content-length")).toBeNull();
    await left.promise;
    expect((await call("/shelves/x/news", { method: "HEAD" })).status).toBe(400);
  });
});

describe("what is asked for", () => {
  async function asked(target: string, headers: Record<string, string> = {}) {
    let seen: Asked | undefined;
    const call = await start(async function* (request) {
      seen = request;
      yield lent(1);
    });
    const { status } = await call(target, { headers });
    return { status, seen };
  }

  test("is read from path and query", async () => {
    const { seen } = await asked("/shelves/7/news?isbn=1,2&isbn=3&after=p9");
    expect(seen).toMatchObject({ shelf: 7n, isbn: [1n, 2n, 3n], after: "p9" });
  });

  test("goes on behind Last-Event-ID, whatever the query says", async () => {
    expect((await asked("/shelves/7/news?after=p9", { "last-event-id": "p11" })).seen).toMatchObject({ after: "p11" });
  });

  test("begins anew without an id, be it empty in the query or in the header", async () => {
    for (const target of ["/shelves/7/news", "/shelves/7/news?after="])
      for (const headers of [undefined, { "last-event-id": "" }]) {
        const { status, seen } = await asked(target, headers);
        expect([status, seen]).toMatchObject([200, { after: "" }]);
      }
  });

  test("is UTF-8 in Last-Event-ID", async () => {
    const bytes = Buffer.from("für €").toString("latin1");
    expect((await asked("/shelves/7/news", { "last-event-id": bytes })).seen).toMatchObject({ after: "für €" });
  });

  test.each([
    ["/shelves/x/news", {}, "INVALID_ID", "shelf: must be an integer"],
    ["/shelves/1/news?isbn=1,2,3,4", {}, "INVALID_QUERY", "isbn: must contain no more than 3 item(s)"],
    ["/shelves/1/news?isbn=", {}, "INVALID_QUERY", "isbn: must not be empty"],
    ["/shelves/1/news?after=a&after=b", {}, "INVALID_QUERY", "after: must not be given twice"],
    [
      "/shelves/1/news",
      { "last-event-id": "x".repeat(21) },
      "INVALID_HEADER",
      "Last-Event-ID: must be at most 20 characters",
    ],
    ["/shelves/1/news?x=1", { prefer: "handling=strict" }, "UNKNOWN_FIELD", "x: is not known here"],
    ["/shelves/1/news", { "x-server-timeout": "0" }, "INVALID_HEADER", expect.stringMatching(/^X-Server-Timeout: /)],
  ])("is refused before a service hears of it: %s %j", async (target, headers, code, message) => {
    const call = await start(() => expect.fail("called"));
    expect((await call(target, { headers: headers as Record<string, string> })).record()).toEqual({
      code,
      message,
      status: 400,
    });
  });
});

const gone = new ConnectError("begin again", Code.OutOfRange);

describe("what fails", () => {
  test("before the first response is an error with its status", async () => {
    const call = await start(async function* () {
      yield* [];
      throw gone;
    });
    const answer = await call("/shelves/1/news", { headers: { accept: "text/event-stream" } });
    expect(answer.record()).toEqual({ code: "OUT_OF_RANGE", message: "begin again", status: 400 });
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
  });

  test.each([
    ["text/event-stream", HEAD + lentText(1), (record: string) => `event: error\ndata: ${record}\n\n`],
    [
      "application/x-ndjson",
      '{"id":"p1","event":"books.lent","data":{"type":"books.lent","isbn":1,"to":"Ann"}}\n',
      (record: string) => `{"id":"p1","event":"error","data":${record}}\n`,
    ],
  ])("after it is the last event of %s", async (accept, before, last) => {
    const call = await start(async function* () {
      yield lent(1);
      throw gone;
    });
    const { status, text } = await call("/shelves/1/news", { headers: { accept } });
    expect(status).toBe(200);
    expect(text).toBe(before + last('{"code":"OUT_OF_RANGE","message":"begin again","status":400}'));
  });

  test("inside tells nothing of it, nor does an id that is none", async () => {
    const call = await start(async function* () {
      yield lent(1);
      throw new Error("secret");
    });
    expect((await call("/shelves/1/news")).text).toMatch(
      /\n\nevent: error\ndata: \{"code":"\w+","message":"Something went wrong\. Quote request [\da-f]{32}\.","status":500\}\n\n$/,
    );
    await server.app.close();
    const wrong = await start(async function* () {
      yield lent(1, "a\nb");
    });
    expect((await wrong("/shelves/1/news")).record()).toMatchObject({ code: "UPSTREAM_ERROR", status: 502 });
  });
});

describe("the end", () => {
  /** Tells of the first book, and when the RPC is ended. */
  function watched() {
    const left = Promise.withResolvers<void>();
    const watch: Watch = async function* (_, context) {
      context.signal.addEventListener("abort", () => left.resolve());
      yield lent(1);
      await endless(context);
    };
    return { watch, left: left.promise };
  }
  const open = async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/shelves/1/news`);
    const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    while (!seen.endsWith(lentText(1))) seen += (await chunks?.read())?.value;
    return chunks as ReadableStreamDefaultReader<string>;
  };

  test("comes for the RPC when the caller goes", async () => {
    const { watch, left } = watched();
    await start(watch);
    await (await open()).cancel();
    await left;
  });

  test("leaves nothing behind when the caller goes while it is asked who calls", async () => {
    let begun = 0;
    const asked = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const authorize = async ({ raw }: { raw: IncomingMessage }) => {
      asked.resolve();
      while (!raw.socket.closed) await turn();
      await turn();
      setImmediate(gone.resolve);
    };
    await start(
      async function* (_, context) {
        begun++;
        yield lent(1);
        await endless(context);
      },
      { authorize },
    );
    const socket = connect(server.port, "127.0.0.1").on("error", () => {});
    socket.write("GET /shelves/1/news HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await asked.promise;
    socket.destroy();
    await gone.promise;
    await turn();
    expect(begun).toBe(0);
    await server.app.close();
  });

  test("comes for the caller, in good order, when the server closes", async () => {
    const { watch, left } = watched();
    await start(watch);
    const chunks = await open();
    const closed = server.app.close();
    expect(await chunks.read()).toMatchObject({ done: true });
    await left;
    await closed;
  });

  test("comes before that when the server says so, and at once for what comes later", async () => {
    const { watch, left } = watched();
    const draining = new AbortController();
    const call = await start(watch, { draining: draining.signal });
    const chunks = await open();
    draining.abort();
    expect(await chunks.read()).toMatchObject({ done: true });
    await left;
    expect((await call("/shelves/1/news")).record()).toMatchObject({ code: "UNAVAILABLE", status: 503 });
  });

  test("comes with an error when its caller may not have it any more, and as an error before it has begun", async () => {
    const { watch, left } = watched();
    const ends = [new AbortController(), new AbortController()];
    const [later, before] = ends;
    const call = await start(watch, { endOf: () => ends.shift()?.signal });
    const chunks = await open();
    later?.abort(new HttpError("UNAUTHENTICATED", "You are not known any more."));
    const record = { code: "UNAUTHENTICATED", message: "You are not known any more.", status: 401 };
    expect((await chunks.read()).value).toBe(`event: error\ndata: ${JSON.stringify(record)}\n\n`);
    expect(await chunks.read()).toMatchObject({ done: true });
    await left;
    before?.abort(new HttpError("UNAUTHENTICATED", "You are not known any more."));
    expect((await call("/shelves/1/news")).record()).toEqual(record);
  });

  test("is none for an EventSource, which goes on behind the last id that it saw, be it a heartbeat's", async () => {
    const places: string[] = [];
    await start(async function* ({ after }) {
      places.push(after);
      const from = Number(after.slice(1)) || 0;
      yield lent(from + 1);
      yield { place: `p${from + 2}`, alive: true };
    });
    const source = new EventSource(`http://127.0.0.1:${server.port}/shelves/1/news?after=p4`);
    const seen: string[] = [];
    await new Promise<void>((resolve) => {
      source.addEventListener("books.lent", ({ lastEventId }) => {
        seen.push(lastEventId);
        if (seen.length === 2) resolve();
      });
    });
    source.close();
    expect(seen).toEqual(["p5", "p7"]);
    expect(places).toEqual(["p4", "p6"]);
  }, 20_000);
});

test("the document tells of both media types, of what events are made of, and of where readers go on", async () => {
  const call = await start(one, { openApi: { title: "News" }, errors: "status" });
  const document = (await call("/openapi.json")).record() as { paths: Record<string, { get: unknown }> };
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
  const value = { anyOf: ["Lent", "Returned", "Status"].map((name) => ({ $ref: `#/components/schemas/${name}` })) };
  const item = (data: object) => ({
    type: "object",
    properties: { id: { type: "string" }, event: { type: "string" }, data },
  });
  const text = { type: "string", contentMediaType: "application/json", contentSchema: value };
  expect(document.paths["/shelves/{shelf}/news"]?.get).toMatchObject({
    operationId: "watchBooks",
    parameters: [
      { name: "shelf", in: "path" },
      { name: "isbn", in: "query" },
      { name: "after", in: "query", schema: { type: "string", maxLength: 20 } },
      { name: "Last-Event-ID", in: "header", schema: { type: "string", maxLength: 20 } },
      { $ref: "#/components/parameters/ServerTimeout" },
      { $ref: "#/components/parameters/GrpcTimeout" },
      { $ref: "#/components/parameters/RequestId" },
    ],
    responses: {
      200: {
        content: {
          "text/event-stream": { schema: { type: "string" }, "x-itemSchema": item(text) },
          "application/x-ndjson": { schema: { type: "string" }, "x-itemSchema": item(value) },
        },
      },
      406: expect.anything(),
      503: expect.anything(),
    },
  });
});
