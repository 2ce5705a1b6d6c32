/** A petstore that is newer than the client. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { clone, create, createFileRegistry, type DescFile, type DescService } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { PetService } from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { createPetstore } from "./petstore.ts";

/** The service of a contract in which pets have one more status. */
function laterService(): DescService {
  const files = new Set<DescFile>();
  const add = (file: DescFile) => {
    file.dependencies.forEach(add);
    files.add(file);
  };
  add(PetService.file);
  const file = [...files].map(({ proto }) => clone(FileDescriptorProtoSchema, proto));
  const status = file.flatMap(({ enumType }) => enumType).find(({ name }) => name === "PetStatus");
  status?.value.push({ ...status.value[0], name: "PET_STATUS_RESERVED", number: 7 } as never);
  return createFileRegistry(create(FileDescriptorSetSchema, { file })).getService(PetService.typeName) as DescService;
}

test("a status that the client does not know is its number", async () => {
  const getPet = () => ({ pet: { id: 1n, name: "Rex", status: 7 } });
  const server = createServer(
    connectNodeAdapter({ routes: ({ service }) => service(laterService(), { getPet } as never) }),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  const petstore = createPetstore({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  const { pet } = await petstore.pets.getPet({ petId: 1n });
  expect(pet).toMatchObject({ name: "Rex", status: 7 });
  server.close();
});
