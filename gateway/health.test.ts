import { afterAll, beforeAll, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { startGateway } from "./fixtures/gateway.ts";
import { createReadiness, health } from "./health.ts";

let accepting = true;
/** Places of the replicas that don't serve. */
let down: string[] = [];
/** How long they may take at most. */
let patience = 0;
/** How often each replica was asked. */
const asked: Record<string, number> = {};
/** Holds their answers back. */
let answering = Promise.resolve();
let now = 0;
const replica = (place: string) => ({
  isServing: async (timeoutMs = 0) => {
    patience = Math.max(patience, timeoutMs);
    asked[place] = (asked[place] ?? 0) + 1;
    await answering;
    return !down.includes(place);
  },
});
const services = [
  { name: "pet", replicas: () => [replica("pet-1")] },
  { name: "order", replicas: () => [replica("order-1"), replica("order-2")] },
];

let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  const plugins = [health("/api", createReadiness({ services, isAccepting: () => accepting, clock: () => now }))];
  gateway = await startGateway(PetService, {}, { basePath: "/api", plugins });
});
afterAll(() => gateway.app.close());

const ask = async (path: string) => {
  now += 1000; // what was found before is too old
  return askAgain(path);
};
const askAgain = async (path: string) => {
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

test("ready while any service is, and names those of which no replica serves", async () => {
  down = ["pet-1", "order-1"];
  expect(await ask("/readyz")).toEqual([200, { status: "ready", failing: ["pet"], degraded: ["order-1"] }]);
  down = ["order-1", "order-2"];
  expect(await ask("/readyz")).toEqual([200, { status: "ready", failing: ["order"] }]);
});

test("is answered within the second that a probe of Kubernetes waits", async () => {
  await ask("/readyz");
  expect(patience).toBeLessThan(1000);
});

test("not ready when no service is, and alive all the same", async () => {
  down = ["pet-1", "order-1", "order-2"];
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["pet", "order"] }]);
  expect(await ask("/healthz")).toEqual([200, { status: "ok" }]);
});

test("asks each replica once, however many ask at a time and one after the other, until the answer is too old", async () => {
  down = ["order-2"];
  const before = { ...asked };
  const held = Promise.withResolvers<void>();
  answering = held.promise;
  let arrived = 0;
  gateway.app.server.on("request", () => ++arrived === 50 && held.resolve());
  const flood = await Promise.all([ask("/readyz"), ...Array.from({ length: 49 }, () => askAgain("/readyz"))]);
  down = [];
  for (let i = 0; i < 10; i++) flood.push(await askAgain("/readyz"));
  for (const answer of flood) expect(answer).toEqual([200, { status: "ready", failing: [], degraded: ["order-2"] }]);
  const times = () => Object.keys(asked).map((place) => (asked[place] ?? 0) - (before[place] ?? 0));
  expect(times()).toEqual([1, 1, 1]);
  expect(await ask("/readyz")).toEqual([200, { status: "ready", failing: [] }]);
  expect(times()).toEqual([2, 2, 2]);
});

test("not ready once it is told to stop, in spite of what was found before and of a look that is under way", async () => {
  down = [];
  const held = Promise.withResolvers<void>();
  answering = held.promise;
  const before = asked["pet-1"] ?? 0;
  const answer = ask("/readyz");
  await expect.poll(() => asked["pet-1"], { timeout: 10_000 }).toBe(before + 1);
  accepting = false;
  held.resolve();
  expect(await answer).toEqual([503, { status: "not ready", failing: ["gateway"] }]);
  expect(await askAgain("/readyz")).toEqual([503, { status: "not ready", failing: ["gateway"] }]);
  accepting = true;
});

test("not ready once it is told to stop", async () => {
  down = [];
  accepting = false;
  expect(await ask("/readyz")).toEqual([503, { status: "not ready", failing: ["gateway"] }]);
  accepting = true;
});
