/** Streams of changes that nobody reads while many changes are made: memory stays bounded, and others are served. */
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PetService, WatchPetsRequestSchema } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { envelope } from "../../packages/rpc/fixtures/envelope.ts";
import { headers } from "../../packages/rpc/fixtures/frames.ts";
import { type Attacked, type Flood, startAttacked, type Target, timeout } from "./flood.ts";
import { begin, fields, http1, http2 } from "./requests.ts";

let attacked: Attacked;
beforeAll(async () => {
  attacked = await startAttacked();
}, timeout);
afterAll(() => attacked?.[Symbol.asyncDispose]());

describe("streams that nobody reads", () => {
  /** Each caller may have 20, and all of them 1,000. */
  const readers = (port: number, bytes: Buffer) => (flood: Flood) => {
    for (let i = 0; i < 500; i++) {
      const localAddress = `127.0.2.${1 + (i % 50)}`;
      const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => {});
      socket.write(bytes);
      flood.defer(() => socket.destroy());
    }
  };
  const change = async () => {
    const pets = attacked.petstore.client(PetService);
    for (let round = 0; round < 10; round++) {
      const name = "🐈".repeat(199) + round;
      const all = Array.from({ length: 100 }, (_, i) =>
        pets.updatePet({ petId: BigInt(1 + i), pet: { name }, updateMask: { paths: ["name"] } }),
      );
      const changed = (await Promise.allSettled(all)).filter(({ status }) => status === "fulfilled");
      expect(changed.length).toBeGreaterThan(0);
    }
  };
  const watch = envelope(toBinary(WatchPetsRequestSchema, create(WatchPetsRequestSchema, { snapshot: true })));
  const watchPath = `/${PetService.typeName}/${PetService.method.watchPets.name}`;

  test.for<[string, Target, Buffer]>([
    ["GET /events", "gateway", http1("GET /events")],
    ["GET /events over HTTP/2", "gateway", Buffer.concat([begin, headers(1, fields("GET", "/events"))])],
    ["Watch over gRPC", "pet", Buffer.concat([begin, http2("POST", watchPath, 1, "application/grpc", watch)])],
    ["Watch over gRPC-Web", "pet", http1(`POST ${watchPath}`, "application/grpc-web+proto", watch)],
  ])("%s", { timeout }, async ([, which, bytes], { annotate }) => {
    const seen = await attacked.survives(which, async (flood) => {
      readers(flood.port, bytes)(flood);
      await change();
    });
    await annotate(seen);
  });
});
