import { afterAll, beforeAll, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { docs } from "./docs.ts";
import { startGateway } from "./fixtures/gateway.ts";

const text = '{"openapi":"3.1.1","x":9223372036854775807}';
const NAMED = "https://shop.example";
let made = 0;
const document = async () => {
  if (++made === 1) throw new Error("not this time");
  return text;
};
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const plugins = [docs({ basePath: "/api", title: "Petstore", url: () => `${NAMED}/api`, document })];
  gateway = await startGateway(PetService, {}, { basePath: "/api", plugins });
});
afterAll(() => gateway.app.close());

test("the document is made when it is asked for, once, and sent as it is, with all digits", async () => {
  expect(made).toBe(0);
  expect((await gateway.call("/api/openapi.json")).status).toBe(500);
  for (let times = 0; times < 2; times++) {
    const answer = await gateway.call("/api/openapi.json");
    expect([answer.status, answer.text]).toEqual([200, text]);
    expect(answer.headers.get("content-type")).toMatch(/^application\/json(;|$)/);
  }
  expect(made).toBe(2);
});

test("whatever the page loads is there, and comes from the same host", async () => {
  const page = await gateway.call("/api/docs");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const addresses = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address as string);
  expect(addresses).toHaveLength(4);
  for (const address of addresses) {
    const url = new URL(address, `${gateway.base}/api/docs`);
    expect(url.origin).toBe(gateway.base);
    expect((await gateway.call(url.pathname)).status).toBe(200);
  }
  const start = await gateway.call("/api/docs/start.js");
  expect(start.text).toContain('url: "openapi.json"');
  expect(start.text).toContain("validatorUrl: null");
});

test("the page calls the address that it came from, whichever of several the document names", async () => {
  const { text: script } = await gateway.call("/api/docs/start.js");
  const page = new URL("http://localhost:8080/api/docs#/Pets");
  const start = new Function("SwaggerUIBundle", "location", script);
  let options: { requestInterceptor?: (request: { url: string }) => { url: string } } = {};
  start((given: typeof options) => {
    options = given;
  }, page);
  const called = (url: string) => options.requestInterceptor?.({ url }).url;
  expect(called(`${NAMED}/api/pets?limit=1`)).toBe("http://localhost:8080/api/pets?limit=1");
  expect(called("http://localhost:8080/api/openapi.json")).toBe("http://localhost:8080/api/openapi.json");
});

test("the browser is told to load nothing from elsewhere", async () => {
  const policy = (await gateway.call("/api/docs")).headers.get("content-security-policy");
  const wanted = [
    "default-src 'none'",
    "script-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  expect(policy?.split("; ")).toEqual(expect.arrayContaining(wanted));
  expect(policy).not.toMatch(/https?:|\*/);
});
