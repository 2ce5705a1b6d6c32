/** What callers learn of a service on the other side of a connection: its own words, and nothing that a library says. */
import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import {
  connectNodeAdapter,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { compileLibrary, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import { RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import type { TranscoderOptions } from "../index.ts";

const service = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");

const transports: Record<string, (baseUrl: string) => Transport> = {
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl, readMaxBytes: 1000 }),
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2", readMaxBytes: 1000 }),
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", readMaxBytes: 1000 }),
};

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function listen(server: Http2Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  open.push({ close: () => server.close() });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Asks, for a book if not told otherwise, by a transport to an address. */
async function ask(
  transport: Transport,
  options: Partial<TranscoderOptions> = {},
  [path, init]: [string, RequestInit?] = ["/books/1"],
) {
  const { app, call } = await serve(
    service,
    {},
    { services: [{ desc: service, transport }], errors: "status", ...options },
  );
  open.unshift(app);
  return call(path, init);
}

describe.each(Object.entries(transports))("by %s", (_name, transportTo) => {
  test.each([
    [Code.NotFound, 404],
    [Code.Unavailable, 503],
    [Code.DeadlineExceeded, 504],
    [Code.Aborted, 409],
    [Code.ResourceExhausted, 429],
    [Code.Canceled, 499],
  ])("code %i is told in the service's words", async (code, status) => {
    const routes = connectNodeAdapter({
      routes: (router) =>
        router.service(service, {
          getBook() {
            throw new ConnectError("said the library: 100 %, ä", code);
          },
        } as object),
    });
    const answer = await ask(transportTo(await listen(createServer(routes))));
    expect(answer.status).toBe(status);
    expect(answer.record()).toEqual({ code, message: "said the library: 100 %, ä", details: [] });
  });

  test("when to try again is in Retry-After", async () => {
    const retry = { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: { seconds: 7n, nanos: 0 } }) };
    const routes = connectNodeAdapter({
      routes: (router) =>
        router.service(service, {
          getBook() {
            throw new ConnectError("full", Code.Unavailable, undefined, [retry]);
          },
        } as object),
    });
    const answer = await ask(transportTo(await listen(createServer(routes))));
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "7"]);
  });

  test.each<[string, (stream: ServerHttp2Stream) => void]>([
    ["cancels the stream", (stream) => stream.close(8)],
    ["refuses the stream", (stream) => stream.close(7)],
    ["wants calm", (stream) => stream.close(11)],
    ["breaks off", (stream) => stream.session?.destroy()],
    [
      "is no such server",
      (stream) => stream.respond({ ":status": 404, "content-type": "text/html" }, { endStream: true }),
    ],
    ["is a proxy without it", (stream) => stream.respond({ ":status": 503 }, { endStream: true })],
    [
      "speaks another protocol",
      (stream) => stream.respond({ ":status": 200, "content-type": "text/html" }, { endStream: true }),
    ],
  ])("what %s is told in the transcoder's words", async (_what, answerWith) => {
    const server = createServer();
    server.on("stream", (stream: ServerHttp2Stream) => {
      stream.on("error", () => {});
      answerWith(stream);
    });
    const answer = await ask(transportTo(await listen(server)));
    expect([500, 502, 503]).toContain(answer.status);
    expect((answer.record() as { message: string }).message).toMatch(
      /^(A service (can't be reached now\. Try again|gave an answer that can't be understood)\.|Something went wrong\. Quote request \w+\.)$/,
    );
    expect((answer.record() as { details: unknown[] }).details).toHaveLength(1);
  });

  test("what is too large, or too late, is told in the transcoder's words", async () => {
    const routes = connectNodeAdapter({
      routes: (router) =>
        router.service(service, {
          getBook: () => ({ title: "x".repeat(2000) }),
          sort: () => ({ numbers: Array(2000).fill(1n) }),
        } as object),
    });
    const transport = transportTo(await listen(createServer(routes)));
    const large = await ask(transport);
    expect(large.status).toBe(502);
    expect(large.text).toContain("A service gave an answer that is larger than allowed. Ask for less.");
    const headers = { "content-type": "application/json" };
    const written = await ask(transport, {}, ["/sort", { method: "POST", headers, body: "[1]" }]);
    expect(written.status).toBe(503);
    expect(written.text).toContain(
      "A service gave an answer that is larger than allowed. The write may or may not have",
    );
    const silent = createServer();
    silent.on("stream", (stream) => stream.on("error", () => {}));
    // On this clock the call begins in time.
    const late = await ask(transportTo(await listen(silent)), { limits: { requestMs: 100 }, clock: () => 0 });
    expect(late.record()).toMatchObject({ code: 4, message: "The time for the request ran out. Try again." });
  });
});
