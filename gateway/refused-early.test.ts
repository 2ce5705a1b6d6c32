/** What is refused before its body is read: by its head alone, and so that its client gets the answer. */
import { createHostCheck } from "@petstore/rpc/http/hosts";
import { HttpError } from "connect-transcoder";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { headOf, statusInPlaceOfContinue, tcp, upload } from "../packages/rpc/fixtures/upload.ts";
import { servedInProcess, startGateway, testLimits } from "./fixtures/gateway.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const implementation = { createPet: () => ({ pet: { id: 9n } }), getPet: () => ({ pet: { id: 9n } }) };
  const services = [{ desc: PetService, transport: servedInProcess(PetService, implementation as never) }];
  const limits = { ...testLimits, rpcBytes: 64 * 1024 };
  gateway = await startGateway(PetService, implementation as never, {
    hosts: { check: createHostCheck(["localhost"]) },
    auth: {
      admit({ headers }) {
        if (headers["x-api-key"] === "wrong") throw new HttpError("UNAUTHENTICATED", "The key is not valid.");
        if (headers["x-api-key"] === "fast") throw new HttpError("RATE_LIMITED", "Too many requests.");
        return { id: "ann" };
      },
    },
    plugins: [rpcEndpoint({ basePath: "", services, limits, clock: Date.now })],
  });
});
afterAll(() => gateway.app.close());

const json = { "content-type": "application/json" };
const GET_PET = "POST /petstore.pet.v1.PetService/GetPet";
const MEGABYTES = 5_000_000;

describe.each<[status: number, what: string, line: string, fields: Record<string, string>]>([
  [401, "no valid key", "POST /pets", { ...json, "x-api-key": "wrong" }],
  [404, "no such path", "POST /nowhere", json],
  [405, "another method", "PUT /pets", json],
  [406, "another type asked for", "POST /pets", { ...json, accept: "text/html" }],
  [413, "a body that is too large", "POST /pets", json],
  [414, "a long target", `POST /pets?x=${"x".repeat(9000)}`, json],
  [415, "another type", "POST /pets", { "content-type": "text/plain" }],
  [421, "another host", "POST /pets", { ...json, host: "evil.example" }],
  [429, "too many requests", "POST /pets", { ...json, "x-api-key": "fast" }],
  [431, "many header fields", "POST /pets", { ...json, x: "y".repeat(17_000) }],
  [401, "no valid key, by RPC", GET_PET, { ...json, "x-api-key": "wrong" }],
  [404, "no such RPC", "POST /petstore.pet.v1.PetService/Nope", { ...json, "connect-protocol-version": "1" }],
  [405, "another method, by RPC", "PUT /petstore.pet.v1.PetService/GetPet", json],
  [415, "a type of no RPC", GET_PET, { "content-type": "text/plain" }],
  [421, "another host, by RPC", GET_PET, { ...json, host: "evil.example" }],
  [429, "a message that is too large", GET_PET, json],
])("%i: %s", (status, _, line, fields) => {
  const head = headOf(line, { ...fields, "content-length": MEGABYTES });

  test("is the answer in place of 100 Continue", async () => {
    expect(await statusInPlaceOfContinue(gateway.port, head)).toBe(status);
  });

  test.each(["keep-alive", "close"])("is read by a client that first sends megabytes, with %s", async (connection) => {
    const answer = await upload(tcp(gateway.port), `${head}connection: ${connection}\r\n\r\n`, Buffer.alloc(MEGABYTES));
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(answer).toMatch(/\r\ncontent-length: \d/i);
  });
});

test.each(["POST /pets", GET_PET])("who waits for 100 Continue gets it where the body is wanted: %s", async (line) => {
  const body = line === GET_PET ? "{}" : '{"name":"Rex","categoryId":1}';
  const head = headOf(line, { ...json, "content-length": body.length });
  expect(await statusInPlaceOfContinue(gateway.port, head)).toBe(100);
});
