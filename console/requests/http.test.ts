import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { PetStatus } from "../../packages/client/gen/petstore/common/v1/pet_status_pb.ts";
import { PetSchema } from "../../packages/client/gen/petstore/pet/v1/pet_pb.ts";
import { httpJson } from "./http.ts";

test("a status is its word, and one that only a newer service knows its number", () => {
  const shown = (status: PetStatus) => httpJson(PetSchema, create(PetSchema, { id: 1n, name: "Rex", status }));
  expect(shown(PetStatus.SOLD)).toMatchObject({ id: 1n, name: "Rex", status: "sold" });
  expect(shown(7 as PetStatus)).toMatchObject({ status: 7 });
});
