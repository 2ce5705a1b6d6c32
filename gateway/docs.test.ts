import { afterAll, beforeAll, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { docs } from "./docs.ts";
import { startGateway } from "./testing.ts";

const document = '{"openapi":"3.1.1","x":9223372036854775807}';
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const plugins = [docs({ basePath: "/api", title: "Petstore", document })];
  gateway = await startGateway(PetService, {}, { basePath: "/api", plugins });
});
afterAll(() => gateway.app.close());

test("the document is sent as it is, with all digits", async () => {
  const { status, headers, text } = await gateway.call("/api/openapi.json");
  expect([status, text]).toEqual([200, document]);
  expect(headers.get("content-type")).toMatch(/^application\/json(;|$)/);
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

test("the browser is told to load nothing from elsewhere", async () => {
  const policy = (await gateway.call("/api/docs")).headers.get("content-security-policy");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/https?:|\*/);
});
