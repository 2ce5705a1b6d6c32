import { createRouterTransport } from "@connectrpc/connect";
import { createPetstore } from "@petstore/client";
import { expect, test } from "vitest";
import { PetService } from "../../packages/client/gen/petstore/pet/v1/pet_service_pb.ts";
import { calls, recorded } from "./log.ts";

test("a call that the page gave up is not shown as one that failed", async () => {
  const isAsked = Promise.withResolvers<void>();
  const transport = createRouterTransport(
    ({ service }) =>
      service(PetService, {
        listPets: () => {
          isAsked.resolve();
          return new Promise(() => {});
        },
        getPet: () => ({ pet: { id: 1n } }),
      }),
    { transport: { interceptors: [recorded] } },
  );
  const { pets } = createPetstore({ transport });
  await pets.get(1);
  const left = new AbortController();
  const list = pets.list({}, { signal: left.signal }).pages().next();
  await isAsked.promise;
  expect(calls.value.map(({ method }) => method.name)).toEqual(["ListPets", "GetPet"]);
  left.abort();
  await expect(list).rejects.toMatchObject({ code: "CANCELLED" });
  expect(calls.value.map(({ method }) => method.name)).toEqual(["GetPet"]);
});
