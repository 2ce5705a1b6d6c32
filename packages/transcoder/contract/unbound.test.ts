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
    import "google/protobuf/field_mask.proto";
    message Order { int64 number = 1; string by = 2; }
    message UpdateOrderRequest { Order order = 1; google.protobuf.FieldMask update_mask = 2; }
    service Shop {
      rpc GetOrder(Order) returns (Order) { option (google.api.http) = {get: "/orders/{number}"}; }
      rpc Place(Order) returns (Order);
      rpc Follow(Order) returns (stream Order);
      rpc UpdateOrder(UpdateOrderRequest) returns (UpdateOrderRequest);
    }`,
});
const shop = serviceOf(files, "shop.v1.Shop");

const implementation = {
  getOrder: ({ number }: { number: bigint }) => ({ number }),
  place: ({ number, by }: { number: bigint; by: string }) => ({ number: number + 1n, by }),
  updateOrder: (request: object) => request,
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

test("an update mask is a member of the body like any other, and not made of what the body names", async () => {
  server = await serve(shop, implementation as object, { unbound: true, codec: "proto3" });
  const update = (body: string) => server.call("/shop.v1.Shop/UpdateOrder", post(body));
  const given = { order: { number: "1", by: "Ann" }, updateMask: "by" };
  expect((await update(JSON.stringify(given))).record()).toEqual(given);
  expect((await update('{"order":{"by":"Ann"}}')).record()).toMatchObject({ updateMask: null });
  const inQuery = await server.call("/shop.v1.Shop/UpdateOrder?updateMask=by", post("{}"));
  expect([inQuery.status, inQuery.text]).toEqual([400, expect.stringContaining("updateMask: is not known here")]);
});

test("they are not served unasked", async () => {
  server = await serve(shop, implementation as object);
  expect((await server.call("/shop.v1.Shop/Place", post("{}"))).status).toBe(404);
  expect(surveyOf(shop).operations.map(({ id, unbound }) => [id, unbound])).toEqual([["getOrder", undefined]]);
  expect(surveyOf(shop, { unbound: true }).operations.map(({ id, unbound }) => [id, unbound])).toEqual([
    ["getOrder", undefined],
    ["place", true],
    ["follow", true],
    ["updateOrder", true],
  ]);
});

test("the document has them", async () => {
  server = await serve(shop, {}, { unbound: true, openApi: { title: "Shop" } });
  const document = (await server.call("/openapi.json")).record() as { paths: Record<string, object> };
  expect((await new Validator().validate(structuredClone(document))).errors).toBeUndefined();
  expect(Object.keys(document.paths)).toEqual([
    "/orders/{number}",
    "/shop.v1.Shop/Place",
    "/shop.v1.Shop/Follow",
    "/shop.v1.Shop/UpdateOrder",
  ]);
  expect(document.paths["/shop.v1.Shop/Place"]).toMatchObject({
    post: {
      operationId: "place",
      requestBody: { content: { "application/json": { schema: { properties: { number: {}, by: {} } } } } },
    },
  });
});
