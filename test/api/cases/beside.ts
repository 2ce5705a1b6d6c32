/** What the gateway serves in addition to the operations. */
import { expect } from "vitest";
import { type Case, rule } from "./case.ts";

const BESIDE = "it is the gateway's own";

const operations = [
  "GET /pets",
  "POST /pets",
  "GET /pets/{petId}",
  "PUT /pets/{petId}",
  "PATCH /pets/{petId}",
  "DELETE /pets/{petId}",
  "GET /categories",
  "POST /categories",
  "GET /categories/{categoryId}",
  "PUT /categories/{categoryId}",
  "PATCH /categories/{categoryId}",
  "DELETE /categories/{categoryId}",
  "GET /store/orders",
  "POST /store/orders",
  "GET /store/orders/{orderId}",
  "PUT /store/orders/{orderId}",
  "PATCH /store/orders/{orderId}",
  "DELETE /store/orders/{orderId}",
  "GET /store/inventory",
  "GET /store/inventory/{petId}",
  "PUT /store/inventory/{petId}",
  "PATCH /store/inventory/{petId}",
  "GET /events",
];
const listsExactly = {
  asymmetricMatch: (paths: object) =>
    Object.entries(paths)
      .flatMap(([path, item]) => Object.keys(item).map((verb) => `${verb.toUpperCase()} ${path}`))
      .sort()
      .join() === operations.toSorted().join(),
};

export const beside: readonly Case[] = [
  rule("GET /openapi.json lists the operations and no others", {
    http: { method: "GET", path: "/openapi.json" },
    oneEndpoint: BESIDE,
    answers: () => ({
      http: {
        status: 200,
        headers: { "content-type": expect.stringMatching(/^application\/json/) },
        body: expect.objectContaining({
          openapi: expect.stringMatching(/^3\.1\./),
          info: expect.objectContaining({ version: "1.0.0" }),
          paths: listsExactly,
        }),
      },
    }),
  }),
  rule("GET /healthz", {
    http: { method: "GET", path: "/healthz" },
    oneEndpoint: BESIDE,
    answers: () => ({ http: { status: 200, body: { status: "ok" } } }),
  }),
  rule("GET /readyz", {
    http: { method: "GET", path: "/readyz" },
    oneEndpoint: BESIDE,
    answers: () => ({ http: { status: 200, body: { status: "ready", failing: [] } } }),
  }),
  ...[
    "/petstore.internal.v1.InventoryInternalService/Open",
    "/petstore.internal.v1.EnvelopeService/Call",
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/petstore.pet.v1.PetService/NoSuchThing",
    "/petstore.pet.v1.PetService",
  ].map((path) =>
    rule(`POST ${path} is not to be called from outside`, {
      http: { method: "POST", path, body: {} },
      oneEndpoint: BESIDE,
      fails: { http: "404 ROUTE_NOT_FOUND" },
    }),
  ),
  rule("Connect's JSON keeps proto3's own leniency", {
    given: (shop) => shop.pet(),
    http: ({ id }) => ({
      method: "POST",
      path: "/petstore.pet.v1.PetService/GetPet",
      body: `{"pet_id":${id},"colour":"black"}`,
    }),
    oneEndpoint: "the RPC cases speak through a client",
    answers: ({ id, categoryId }) => ({
      http: {
        status: 200,
        headers: { deprecation: null },
        body: {
          pet: {
            id: `${id}`,
            name: "Rex",
            categoryId: `${categoryId}`,
            status: "PET_STATUS_AVAILABLE",
            etag: expect.any(String),
          },
        },
      },
    }),
  }),
];
