/** RPCs without an HTTP rule, where they are asked for. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterEach, expect, test } from "vitest";
import { compileProtos, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import { surveyOf } from "./operations.ts";

const files = compileProtos({
  "shop.proto": `
    syntax = "proto3";
    package shop.v1;
    import "google/api/annotations.proto";
    message Order { int64 number = 1; string by = 2; }
    service Shop {
      rpc GetOrder(Order) returns (Order) { option (google.api.http) = {get: "/orders/{number}"}; }
      rpc Place(Order) returns (Order);
      rpc Follow(Order) returns (stream Order);
    }`,
});
const shop = serviceOf(files, "shop.v1.Shop");

const implementation = {
  getOrder: ({ number }: { number: bigint }) => ({ number }),
  place: ({ number, by }: { number: bigint; by: string }) => ({ number: number + 1n, by }),
  async *follow({ number }: { number: bigint }) {
    for (const more of [1n, 2n]) yield { number: number + more };
  },
};

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

const post = (body: string) => ({ method: "POST", body, headers: { "content-type": "application/json" } });

test("each is a POST to its name, with the whole request as the body", async () => {
  server = await serve(shop, implementation as object, { unbound: true, basePath: "/api" });
  expect(
    JSON.parse((await server.call("/api/shop.v1.Shop/Place", post('{"number":1,"by":"Ann"}'))).text),
  ).toMatchObject({
    by: "Ann",
  });
  const lines = (await server.call("/api/shop.v1.Shop/Follow", post("{}"))).text.trimEnd().split("\n");
  expect(lines).toHaveLength(2);
  // What has a rule is served by that alone.
  expect((await server.call("/api/shop.v1.Shop/GetOrder", post("{}"))).status).toBe(404);
  const wrong = await server.call("/api/shop.v1.Shop/Place");
  expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "OPTIONS, POST"]);
});

test("they are not served unasked", async () => {
  server = await serve(shop, implementation as object);
  expect((await server.call("/shop.v1.Shop/Place", post("{}"))).status).toBe(404);
  expect(surveyOf(shop).operations.map(({ id, unbound }) => [id, unbound])).toEqual([["getOrder", undefined]]);
  expect(surveyOf(shop, { unbound: true }).operations.map(({ id, unbound }) => [id, unbound])).toEqual([
    ["getOrder", undefined],
    ["place", true],
    ["follow", true],
  ]);
});

test("the document has them", async () => {
  server = await serve(shop, {}, { unbound: true, openApi: { title: "Shop" } });
  const document = (await server.call("/openapi.json")).record() as { paths: Record<string, object> };
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
  expect(Object.keys(document.paths)).toEqual(["/orders/{number}", "/shop.v1.Shop/Place", "/shop.v1.Shop/Follow"]);
  expect(document.paths["/shop.v1.Shop/Place"]).toMatchObject({
    post: {
      operationId: "place",
      requestBody: { content: { "application/json": { schema: { properties: { number: {}, by: {} } } } } },
    },
  });
});
