/** A petstore that is newer than the client. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { clone, create, createFileRegistry, type DescFile, type DescService } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { PetstoreError } from "./errors.ts";
import { PetService } from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { createPetstore, type Petstore } from "./petstore.ts";

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

/** What this server answers is read. */
async function readFrom<T>(server: Server, read: (petstore: Petstore) => Promise<T>): Promise<T> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return await read(createPetstore({ baseUrl: `http://127.0.0.1:${port}` })).finally(() => server.close());
}

test("a status that the client does not know is the text of its number, in a record and in an event", async () => {
  const getPet = () => ({ pet: { id: 1n, name: "Rex", status: 7 } });
  const routes = connectNodeAdapter({ routes: ({ service }) => service(laterService(), { getPet } as never) });
  const expected = { id: 1, name: "Rex", status: "7" };
  expect(await readFrom(createServer(routes), ({ pets }) => pets.get(1))).toMatchObject(expected);
  const data = { id: "1", etag: '"1"', data: { id: 1, name: "Rex", categoryId: 1, status: 7 } };
  const lines = [
    { id: "a", event: "petstore.pet.napped.v1", data },
    { id: "b", event: "petstore.vet.created.v1" },
    { id: "c", event: "petstore.pet.created.v1", data },
  ];
  const events = createServer((_, response) =>
    response
      .setHeader("content-type", "application/x-ndjson")
      .end(lines.map((line) => `${JSON.stringify(line)}\n`).join("")),
  );
  const first = await readFrom(events, async ({ watch }) => (await watch().next()).value);
  expect(first).toMatchObject({ type: "created", recordType: "pet", record: expected });
});

test("a code that the client does not know is told as it is", async () => {
  const failed = new PetstoreError("PET_ASLEEP", "Wait until it wakes.", { status: 409 });
  expect(failed).toMatchObject({ code: "PET_ASLEEP", advice: expect.stringContaining("Read") });
});
