/** A gateway that is older than a service: what it answers where the service sends an enum value that it does not know. */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { servedInProcess, startGateway, testLimits } from "./fixtures/gateway.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const pet = { id: 1n, name: "Rex", categoryId: 2n, status: 7 as PetStatus, etag: '"1"' };
const implementation = { getPet: () => ({ pet }), createPet: () => ({ pet }), listPets: () => ({ pets: [pet] }) };
const shown = '{"id":1,"name":"Rex","categoryId":2,"status":7}';

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const services = [{ desc: PetService, transport: servedInProcess(PetService, implementation) }];
  const limits = { rpcBytes: 64 * 1024, requestMs: testLimits.requestMs };
  const endpoint = rpcEndpoint({ basePath: "", services, limits, clock: Date.now });
  gateway = await startGateway(PetService, {}, { services, plugins: [endpoint] });
});
afterAll(() => gateway.app.close());

test.each([
  ["GET", "/pets/1", 200, shown],
  ["GET", "/pets", 200, `[${shown}]`],
  ["POST", "/pets", 201, shown],
])("%s %s tells its number", async (method, path, status, text) => {
  const body = method === "POST" ? '{"name":"Rex","categoryId":2}' : undefined;
  const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  expect(await gateway.call(path, { method, headers, ...(body && { body }) })).toMatchObject({ status, text });
});

test.each([false, true])("Connect tells its number, as it always did; in binary: %s", async (useBinaryFormat) => {
  const transport = createConnectTransport({ baseUrl: gateway.base, httpVersion: "1.1", useBinaryFormat });
  expect((await createClient(PetService, transport).getPet({ petId: 1n })).pet?.status).toBe(7);
});
