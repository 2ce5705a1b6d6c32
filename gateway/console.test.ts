import { readdirSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { petstoreConsole } from "./console.ts";
import { recordIn, sendRaw, startGateway } from "./fixtures/gateway.ts";

const assets = join(import.meta.dirname, "../console/dist/assets");

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const plugins = [petstoreConsole({ basePath: "/api" })];
  gateway = await startGateway(PetService, {}, { basePath: "/api", plugins });
});
afterAll(() => gateway.app.close());

/** As a browser does that is led to an address. */
const visit = (path: string, { headers, ...init }: RequestInit = {}) =>
  gateway.call(path, { ...init, headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8", ...headers } });

/** Where the page says that its files are, as the browser reads it. */
async function addresses(): Promise<URL[]> {
  const { text } = await visit("/api/");
  return [...text.matchAll(/(?:src|href)="([^"]+)"/g)]
    .filter(([, address]) => address !== "docs")
    .map(([, address = ""]) => new URL(address, `${gateway.base}/api/`));
}

test("the page may be kept, and is asked for again each time", async () => {
  const { status, headers } = await visit("/api/");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-cache");
  const etag = headers.get("etag") ?? "";
  for (const tags of [etag, `"other", W/${etag}`, "*"]) {
    const again = await visit("/api/", { headers: { "if-none-match": tags } });
    expect([tags, again.status, again.text, again.headers.get("etag")]).toEqual([tags, 304, "", etag]);
  }
  expect((await visit("/api/", { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  expect((await visit("/api/", { method: "HEAD" })).headers.get("etag")).toBe(etag);
});

test("it loads files of its own origin, which are kept for ever, for their names change with them", async () => {
  const all = await addresses();
  expect(all).toHaveLength(3);
  const types = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };
  for (const { origin, pathname } of all) {
    expect(origin).toBe(gateway.base);
    expect(pathname).toMatch(/^\/api\/console\/\w+-[0-9a-f]{12}\.\w+$/);
    const { status, headers } = await gateway.call(pathname);
    expect([status, headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"]);
    expect(headers.get("content-type")).toBe(types[pathname.split(".").at(-1) as "js"]);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  }
});

describe("a file is packed for who takes it", () => {
  const ask = (path: string, accept: string | undefined) =>
    new Promise<{ coding: string | undefined; vary: string | undefined; body: Buffer }>((resolve, reject) => {
      const headers = accept === undefined ? {} : { "accept-encoding": accept };
      get(gateway.base + path, { headers }, async (answer) => {
        const chunks = await answer.toArray();
        const { "content-encoding": coding, vary } = answer.headers;
        resolve({ coding, vary, body: Buffer.concat(chunks) });
      }).on("error", reject);
    });
  const script = () => readdirSync(assets).find((name) => name.endsWith(".js")) ?? "";

  test.each(["gzip", "br, gzip;q=0.8, *;q=0.1", "GZIP"])("%s", async (accept) => {
    const { coding, vary, body } = await ask(`/api/console/${script()}`, accept);
    expect([coding, vary]).toEqual(["gzip", "Accept-Encoding"]);
    expect(gunzipSync(body)).toEqual(readFileSync(join(assets, script())));
  });
  test.each([undefined, "identity", "gzip;q=0", "gzip; q=0.0, br"])("not for %s", async (accept) => {
    const { coding, vary, body } = await ask(`/api/console/${script()}`, accept);
    expect([coding, vary]).toEqual([undefined, "Accept-Encoding"]);
    expect(body).toEqual(readFileSync(join(assets, script())));
  });
});

test("a browser loads 120 KB at most, packed", async () => {
  const packed = readdirSync(assets).filter((name) => name.endsWith(".gz"));
  const page = readFileSync(join(assets, "../index.html"));
  const sizes = packed.map((name) => readFileSync(join(assets, name)).length);
  expect(sizes).toHaveLength(3);
  expect(sizes.reduce((a, b) => a + b, page.length)).toBeLessThan(120_000);
});

test("the browser is told to run and load nothing from elsewhere, and nothing that stands in the page", async () => {
  const policy = (await visit("/api/")).headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/https?:|\*|unsafe|data:/);
  // No other page may show it and catch its clicks, and nothing that is typed goes elsewhere.
  for (const rule of ["frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'", "connect-src 'self'"])
    expect(policy.split("; ")).toContain(rule);
  const { text } = await visit("/api/");
  expect(text).not.toMatch(/<style|style=|<script(?![^>]*src=)| on\w+=/);
});

test("behind a prefix the page is found without its slash, and there is none elsewhere", async () => {
  const { status, headers } = await visit("/api");
  expect([status, headers.get("location")]).toEqual([308, "/api/"]);
  const record = { code: "ROUTE_NOT_FOUND", status: 404 };
  for (const path of [
    "/",
    "/api/console/",
    "/api/console/nothing.js",
    "/api/console/..%2findex.html",
    "/api/index.html",
  ])
    expect([path, JSON.parse((await gateway.call(path)).text)]).toEqual([path, expect.objectContaining(record)]);
  // As no client sends it that takes it for a URL.
  for (const path of ["/api/console/../index.html", "/api/console/../../package.json"]) {
    const answer = await sendRaw(gateway.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect([path, recordIn(answer)]).toEqual([path, expect.objectContaining(record)]);
  }
  const posted = await gateway.call("/api/", { method: "POST" });
  expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
});

test.each([undefined, "application/json", "*/*"])(
  "a program that takes %s finds no operation there",
  async (accept) => {
    for (const path of ["/api/", "/api"]) {
      const { status, headers, text } = await gateway.call(path, { headers: accept ? { accept } : {} });
      expect([status, JSON.parse(text).code]).toEqual([404, "ROUTE_NOT_FOUND"]);
      expect(headers.get("vary")).toContain("Accept");
    }
  },
);
