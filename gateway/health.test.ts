import { afterAll, beforeAll, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { health } from "./health.ts";
import { startGateway } from "./testing.ts";

let accepting = true;
/** Places of the replicas that don't serve. */
let down: string[] = [];
const replica = (place: string) => ({ isServing: async () => !down.includes(place) });
const services = [
  { name: "pet", replicas: [replica("pet-1")] },
  { name: "order", replicas: [replica("order-1"), replica("order-2")] },
];

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
  down = [];
  expect(await ask("/readyz")).toEqual([200, { status: "ready", failing: [] }]);
});

test("ready with one replica of each, and names those that are missing", async () => {
  down = ["order-2"];
  expect(await ask("/readyz")).toEqual([200, { status: "ready", failing: [], degraded: ["order-2"] }]);
});

test("names the services of which no replica serves, and stays alive itself", async () => {
  down = ["pet-1", "order-1"];
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["pet"], degraded: ["order-1"] }]);
  down = ["pet-1", "order-1", "order-2"];
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["pet", "order"] }]);
  expect(await ask("/healthz")).toEqual([200, { status: "ok" }]);
});

test("not ready once it is told to stop", async () => {
  down = [];
  accepting = false;
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["gateway"] }]);
  accepting = true;
});
