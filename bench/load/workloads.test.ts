import { describe, expect, test } from "vitest";
import { petOf } from "../seed/pets.ts";
import { type Request, requestsOf, type Workload, workloads } from "./workloads.ts";

const named = (name: string) => workloads.find((workload) => workload.name === name) as Workload;

test("every peer is asked the same, and each round something else", () => {
  for (const workload of workloads) expect(requestsOf(workload, 100, 3)).toEqual(requestsOf(workload, 100, 3));
  expect(requestsOf(named("get"), 100, 3)).not.toEqual(requestsOf(named("get"), 100, 4));
});

describe("mixed", () => {
  const requests = requestsOf(named("mixed"), 1000, 1);
  const share = (isOne: (path: string) => boolean) =>
    requests.filter(({ path }) => isOne(path)).length / requests.length;
  test("is 8 of 10 reads of a pet, 1 a list, 1 an order", () => {
    expect(share((path) => /^\/pets\/\d+$/.test(path))).toBeCloseTo(0.8, 1);
    expect(share((path) => path.startsWith("/pets?"))).toBeCloseTo(0.1, 1);
    expect(share((path) => path === "/store/orders")).toBeCloseTo(0.1, 1);
  });
  test("orders only what is for sale", () => {
    const ordered = requests.flatMap(({ body }) => (body === undefined ? [] : [JSON.parse(body).petId as number]));
    expect(new Set(ordered.map((id) => petOf(id).status))).toEqual(new Set(["available"]));
  });
});

describe("orders", () => {
  const requests = requestsOf(named("orders"), 1000, 1);
  const share = (isOne: (request: Request) => boolean) => requests.filter(isOne).length / requests.length;
  test("fewer are settled than placed, so that there is always one to settle", () => {
    const placed = share(({ method, isRefused }) => method === "POST" && !isRefused);
    const settled = share(({ settles }) => settles === true);
    expect([placed, settled].map((one) => Math.round(20 * one))).toEqual([7, 5]);
  });
  test("those that must be refused are for more than any pet has", () => {
    const refused = requests.filter(({ isRefused }) => isRefused);
    expect(refused.length).toBeGreaterThan(0);
    for (const { body = "" } of refused) {
      const { petId, quantity } = JSON.parse(body) as { petId: number; quantity: number };
      expect(quantity).toBeGreaterThan(petOf(petId).quantity);
    }
  });
});
