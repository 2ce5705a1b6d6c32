import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { expect, test } from "vitest";
import { GetPetResponseSchema, WatchPetsResponseSchema } from "./gen/petstore/pet/v1/pet_service_pb.ts";
import { createPetstore, petstoreWith } from "./petstore.ts";

const answer = () =>
  new Response(toBinary(GetPetResponseSchema, create(GetPetResponseSchema, { pet: { id: 1n, name: "Rex" } })), {
    headers: { "content-type": "application/proto" },
  });

test("a call goes through the interceptors and the fetch that are given, to the address that is given", async () => {
  const sent: unknown[] = [];
  const marked =
    (mark: string): Interceptor =>
    (next) =>
    (request) => {
      request.header.append("x-mark", mark);
      return next(request);
    };
  const fetch = async (url: unknown, init?: RequestInit) => {
    sent.push(url, new Headers(init?.headers).get("x-mark"));
    return answer();
  };
  const interceptors = [marked("outer"), marked("inner")];
  for (const baseUrl of ["http://petstore.test/api/", ""]) {
    const { pets } = createPetstore({ baseUrl, fetch, interceptors });
    expect(await pets.get(1)).toMatchObject({ id: 1, name: "Rex" });
  }
  const path = "/petstore.pet.v1.PetService/GetPet";
  expect(sent).toEqual([`http://petstore.test/api${path}`, "outer, inner", path, "outer, inner"]);
});

test("a call that gets no answer ends with its time, or with its signal", async () => {
  const fetch = async (_: unknown, init?: RequestInit) => {
    init?.signal?.throwIfAborted();
    return new Promise<Response>((_, reject) =>
      init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)),
    );
  };
  const { pets } = createPetstore({ baseUrl: "http://petstore.test", fetch });
  await expect(pets.get(1, { timeout: 1 })).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED", status: 504 });
  const gone = new AbortController();
  const call = pets.get(1, { signal: gone.signal });
  gone.abort();
  await expect(call).rejects.toMatchObject({ code: "CANCELLED" });
});

const message = (init: MessageInitShape<typeof WatchPetsResponseSchema>) =>
  encodeEnvelope(0, toBinary(WatchPetsResponseSchema, create(WatchPetsResponseSchema, init)));
const end = (error?: object) => encodeEnvelope(2, new TextEncoder().encode(JSON.stringify({ error })));
const created = (n: number) =>
  message({ resumeToken: `${n}`, response: { case: "event", value: { id: `${n}`, type: 2, pet: { id: BigInt(n) } } } });

test("a stream that breaks off is resumed, as one that ends, and a refusal is told with its request", async () => {
  const detail = { type: "google.rpc.ErrorInfo", value: btoa("\n\u0011PERMISSION_DENIED\u0012\bpetstore") };
  const streams = [
    [created(1)],
    [created(2), end()],
    [end({ code: "permission_denied", message: "No.", details: [detail] })],
  ];
  const fetch = async () =>
    new Response(new Blob(streams.shift()), {
      headers: { "content-type": "application/connect+proto", "x-request-id": "r-1" },
    });
  const deps = { clock: () => 0, random: () => 0, sleep: (ms: number) => new Promise<void>((r) => ms || r()) };
  const told: number[] = [];
  const watch = async () => {
    const { pets } = petstoreWith({ baseUrl: "http://petstore.test", fetch }, deps);
    for await (const { record } of pets.watch()) told.push(record.id);
  };
  await expect(watch()).rejects.toMatchObject({ code: "PERMISSION_DENIED", status: 403, requestId: "r-1" });
  expect(told).toEqual([1, 2]);
});
