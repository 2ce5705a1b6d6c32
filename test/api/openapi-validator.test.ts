import { jsonText } from "connect-transcoder";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rpcError } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { startGateway, testLimits } from "../../gateway/fixtures/gateway.ts";
import { petstoreDocument } from "../../gateway/openapi.ts";
import { checkAgainstDocument, type SeenResponse } from "./openapi-validator.ts";

const limits = { ...testLimits, rpcBytes: 1024 };
const document = JSON.parse(
  jsonText(petstoreDocument({ basePath: "/api", limits, deprecation: {}, rate: undefined, auth: undefined })),
);

const pet = { id: 9223372036854775807n, name: "Rex", categoryId: 1n, status: 1, etag: '"3"' };
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const implementation = {
    listPets: () => ({ pets: [pet], nextPageToken: "more" }),
    createPet: () => ({ pet }),
    deletePet: () => ({}),
    getPet: ({ petId }: { petId: bigint }) => {
      if (petId === 404n) throw rpcError("PET_NOT_FOUND", "There is no pet 404.");
      if (petId === 409n) throw rpcError("INSUFFICIENT_STOCK", "A read can't fail like this.");
      return { pet };
    },
  };
  gateway = await startGateway(PetService, implementation as never, { basePath: "/api" });
});
afterAll(() => gateway.app.close());

async function ask(method: string, path: string, init: RequestInit = {}) {
  const request = { method, target: `/api${path}` };
  return { request, response: await gateway.call(request.target, { method, ...init }) };
}
const json = (body: string): RequestInit => ({ body, headers: { "content-type": "application/json" } });

describe("what a gateway answers is what the document says", () => {
  test.each<[string, string, RequestInit?]>([
    ["GET", "/pets?limit=1"],
    ["HEAD", "/pets"],
    ["GET", "/pets/7"],
    ["HEAD", "/pets/7"],
    ["GET", "/pets/7", { headers: { "if-none-match": '"3"' } }],
    ["GET", "/pets/7", { headers: { "if-match": '"4"' } }],
    ["GET", "/pets/404"],
    ["GET", "/pets/404", { headers: { accept: "application/problem+json" } }],
    ["GET", "/pets/x"],
    ["GET", "/pets?limit=0"],
    ["POST", "/pets", json('{"name":"Rex","categoryId":1}')],
    ["POST", "/pets", json("{")],
    ["PATCH", "/pets/7", { body: "a", headers: { "content-type": "text/plain" } }],
    ["DELETE", "/pets/7"],
    ["GET", "/nothing"],
    ["GET", "/pets/"],
    ["PUT", "/pets"],
    ["OPTIONS", "/pets/7"],
  ])("%s %s", async (method, path, init) => {
    const { request, response } = await ask(method, path, init);
    expect(() => checkAgainstDocument(document, request, response)).not.toThrow();
  });

  test("a path without parameters goes before one that has them", async () => {
    const added = { ...document, paths: { ...document.paths, "/pets/newest": document.paths["/pets"] } };
    const { response } = await ask("GET", "/pets");
    const request = { method: "GET", target: "/api/pets/newest" };
    expect(() => checkAgainstDocument(added, request, response)).not.toThrow();
  });
});

/** Without a value the header is taken away. */
function withHeader(headers: Headers, name: string, value?: string): Headers {
  const changed = new Headers(headers);
  changed.delete(name);
  if (value !== undefined) changed.set(name, value);
  return changed;
}

describe("what the document does not say is found", () => {
  const tampered: [string, (response: SeenResponse) => Partial<SeenResponse>, string][] = [
    ["a status", () => ({ status: 418 }), "status 418 is not among"],
    [
      "a header",
      ({ headers }) => ({ headers: withHeader(headers, "x-powered-by", "magic") }),
      "header x-powered-by is not listed",
    ],
    [
      "what caches may do",
      ({ headers }) => ({ headers: withHeader(headers, "cache-control", "max-age=60") }),
      'header Cache-Control: "max-age=60"',
    ],
    ["a header that is gone", ({ headers }) => ({ headers: withHeader(headers, "etag") }), "header ETag is missing"],
    ["a header of another form", ({ headers }) => ({ headers: withHeader(headers, "etag", "3") }), 'header ETag: "3"'],
    [
      "a media type",
      ({ headers }) => ({ headers: withHeader(headers, "content-type", "text/html") }),
      'media type "text/html"',
    ],
    ["a member", ({ text }) => ({ text: text.replace("{", '{"etag":"3",') }), '"additionalProperty":"etag"'],
    ["a member that is gone", ({ text }) => ({ text: text.replace('"name":"Rex",', "") }), '"missingProperty":"name"'],
    ["a value of another type", ({ text }) => ({ text: text.replace('"Rex"', "7") }), "/name must be string"],
    [
      "digits that are lost",
      ({ text }) => ({ text: text.replace("775807", "775807.0") }),
      "not plain integers of 64 bits",
    ],
    [
      "an integer beyond 64 bits",
      ({ text }) => ({ text: text.replace("9223372036854775807", "99999999999999999999") }),
      "not plain integers",
    ],
    ["a body that is no JSON", () => ({ text: "<html>" }), "the body is no JSON"],
  ];
  test.each(tampered)("%s", async (_, tamper, finding) => {
    const { request, response } = await ask("GET", "/pets/7");
    const answer = { ...response, ...tamper(response) };
    expect(() => checkAgainstDocument(document, request, answer)).toThrow(finding);
  });

  test("a code that this operation does not have", async () => {
    const { request, response } = await ask("GET", "/pets/404");
    const text = response.text.replace("PET_NOT_FOUND", "ORDER_NOT_FOUND");
    expect(() => checkAgainstDocument(document, request, { ...response, text })).toThrow(
      "/code must be equal to one of",
    );
  });
  test("a code that this operation does not have, in a problem", async () => {
    const { request, response } = await ask("GET", "/pets/404", { headers: { accept: "application/problem+json" } });
    const text = response.text.replace("PET_NOT_FOUND", "ORDER_NOT_FOUND");
    expect(() => checkAgainstDocument(document, request, { ...response, text })).toThrow(
      "/code must be equal to one of",
    );
  });
  test("a failure that this operation does not have", async () => {
    const { request, response } = await ask("GET", "/pets/409");
    expect(() => checkAgainstDocument(document, request, response)).toThrow("status 409 is not among");
  });
  test("a body where none is allowed", async () => {
    const { request, response } = await ask("DELETE", "/pets/7");
    expect(() => checkAgainstDocument(document, request, { ...response, text: "{}" })).toThrow("there must be no body");
  });
  test("an answer to a path or method that does not exist", async () => {
    const { response } = await ask("GET", "/pets/7");
    const check = (method: string, target: string) => () =>
      checkAgainstDocument(document, { method, target }, response);
    expect(check("GET", "/api/nothing")).toThrow("must get 404 ROUTE_NOT_FOUND");
    expect(check("PUT", "/api/pets")).toThrow("must get 405 METHOD_NOT_ALLOWED");
  });
});
