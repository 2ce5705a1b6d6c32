/** Refusals before Fastify, in the form that the options say. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { compileLibrary, serviceOf } from "../fixtures/compile.ts";
import { records } from "../fixtures/server.ts";
import { type Errors, HttpError, refuseEarly } from "../index.ts";

const desc = serviceOf(compileLibrary(), "foreign.library.v1.LibraryService");
const services = [{ desc, transport: createRouterTransport(() => {}) }];
const error = new HttpError("UNAVAILABLE", "There is too much to do.");
const info = {
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason: "UNAVAILABLE",
  domain: "connect-transcoder",
};

test.each<[string, Errors | undefined, string, object]>([
  ["a Status by default", undefined, "application/json", { code: 14, message: error.message, details: [info] }],
  ["a problem", "problem", "application/problem+json", { status: 503, code: 14, details: [info] }],
  ["one's own", records, "application/json", { code: "UNAVAILABLE", message: error.message, status: 503 }],
])("%s", async (_what, errors, type, body) => {
  const listener = refuseEarly({ services, errors, error, refuses: () => true }, (_request, response) =>
    response.end("next"),
  );
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const refused = await fetch(`${base}/books/1`);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(refused.headers.get("content-type")).toBe(`${type}; charset=utf-8`);
  expect(await refused.json()).toMatchObject(body);
  expect(await (await fetch(`${base}/nothing`)).text()).toBe("next");
  server.close();
  server.closeAllConnections();
});
