import { HttpError, operationsOf } from "connect-transcoder";
import { afterEach, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { Auth } from "./auth.ts";
import { createDeprecatedCalls } from "./deprecated-calls.ts";
import { startGateway } from "./fixtures/gateway.ts";

const getPet = operationsOf(PetService).find(({ deprecation }) => deprecation);
if (!getPet) throw new Error("There is no deprecated operation.");

let now = 0;
let gateway: Awaited<ReturnType<typeof startGateway>> | undefined;
afterEach(async () => {
  await gateway?.app.close();
  gateway = undefined;
});

async function start() {
  const deprecatedCalls = createDeprecatedCalls({}, () => ++now);
  const auth: Auth = {
    admit({ headers: { authorization: id } }, _method, known) {
      if (!id) throw new HttpError("UNAUTHENTICATED", "Who are you?");
      known({ id });
      return { id };
    },
  };
  const getPet = () => ({ pet: { id: 1n, etag: '"1"' } });
  gateway = await startGateway(PetService, { getPet }, { deprecatedCalls, auth });
  const { base } = gateway;
  const call = (path: string, id?: string, init: RequestInit = {}) =>
    fetch(base + path, { ...init, headers: { ...init.headers, ...(id && { authorization: id }) } });
  return { call, report: () => deprecatedCalls.report() };
}

test("calls of a deprecated operation are counted by caller, whatever they are answered", async () => {
  const { call, report } = await start();
  await call("/pets/1", "ann");
  await call("/pets/x", "ann");
  await call("/pets/1", "ann", { headers: { accept: "image/png" } });
  await call("/pets/1", "bob", { method: "HEAD" });
  expect(report()).toEqual({
    since: expect.any(Date),
    calls: [
      {
        operation: "GET /pets/{petId}",
        sunset: getPet.deprecation?.sunsetAt,
        successor: "/pets?id={pet_id}",
        caller: "ann",
        calls: 3,
        last: expect.any(Date),
      },
      expect.objectContaining({ caller: "bob", calls: 1 }),
    ],
    forgotten: 0,
  });
});

test("callers that are not let in, and other operations, are not", async () => {
  const { call, report } = await start();
  await call("/pets/1");
  await call("/pets?id=1", "ann");
  await call("/pets/1", "ann", { method: "DELETE" });
  expect(report().calls).toEqual([]);
});

test("who calls without credentials is named by the address, and who calls after the sunset as well", async () => {
  const sunset = { deprecatedAt: 0, sunsetAt: 1, goneAfterSunset: true };
  const deprecatedCalls = createDeprecatedCalls(sunset, () => 7);
  gateway = await startGateway(PetService, {}, { deprecatedCalls, deprecation: sunset });
  expect((await gateway.call("/pets/1")).status).toBe(410);
  expect(deprecatedCalls.report().calls).toMatchObject([
    { caller: "address 127.0.0.1", calls: 1, last: new Date(7), sunset: new Date(1) },
  ]);
});

test("of too many callers the one who has been away longest makes room", () => {
  const calls = createDeprecatedCalls({}, () => ++now, 2);
  for (const caller of ["ann", "bob", "bob", "ann", "carl"]) calls.count(getPet, caller);
  expect(calls.report()).toMatchObject({
    calls: [
      { caller: "ann", calls: 2 },
      { caller: "carl", calls: 1 },
    ],
    forgotten: 2,
  });
});

test("more than a thousand callers take the room of a thousand", () => {
  const calls = createDeprecatedCalls({}, () => ++now);
  for (let i = 0; i < 10_000; i++) calls.count(getPet, `address ${i}`);
  expect(calls.report()).toMatchObject({ calls: { length: 1000 }, forgotten: 9000 });
});
