import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";

const baseUrl = process.env.PETSTORE_URL ?? "http://127.0.0.1:8080";
const pets = createClient(PetService, createConnectTransport({ baseUrl }));

for (const pet of (await pets.listPets({ limit: 10 })).pets) process.stdout.write(`${pet.id} ${pet.name}\n`);
