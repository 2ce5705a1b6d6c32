import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#proto/health/v1/health_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { health } from "./health.ts";
import { startGateway } from "./testing.ts";

let accepting = true;
type Check = () => Promise<{ status: Status }> | { status: Status };
let statuses: Record<string, Check> = {};
const serving = () => ({ status: Status.SERVING });
const services = ["pet", "order"].map((name) => ({
  name,
  transport: createRouterTransport(({ service }) => service(Health, { check: () => statuses[name]?.() ?? serving() })),
}));

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const plugins = [health({ basePath: "/api", services, isAccepting: () => accepting })];
  gateway = await startGateway(PetService, {}, { basePath: "/api", plugins });
});
afterAll(() => gateway.app.close());

const ask = async (path: string) => {
  const { status, text } = await gateway.call(`/api${path}`);
  return [status, JSON.parse(text)];
};

test("ready when every service is", async () => {
  statuses = {};
  expect(await ask("/readyz")).toEqual([200, { status: "ready", failing: [] }]);
});

test("names the services that are not ready or do not answer, and stays alive itself", async () => {
  statuses = { pet: () => ({ status: Status.NOT_SERVING }) };
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["pet"] }]);
  statuses = {
    pet: () => {
      throw new ConnectError("down", Code.Unavailable);
    },
    order: () => new Promise(() => {}),
  };
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["pet", "order"] }]);
  expect(await ask("/healthz")).toEqual([200, { status: "ok" }]);
});

test("not ready once it is told to stop", async () => {
  statuses = {};
  accepting = false;
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["gateway"] }]);
  accepting = true;
});
