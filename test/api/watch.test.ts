/** Changes as the petstore's processes tell them at their ports, through their ends and from one replica to another. */
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { EventType } from "#proto/petstore/common/v1/watch_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { brief, watching } from "../../services/records/fixtures/watching.ts";
import { openGrpc } from "../harness/grpc.ts";
import type { Which } from "../harness/instances.ts";
import { mongodbMissing } from "../harness/mongodb.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { openShop, type Shop } from "./cases/shop.ts";

const timeout = 180_000;

let petstore: Petstore;
let shop: Shop;
beforeAll(async () => {
  petstore = await startPetstore();
  shop = openShop(petstore);
}, timeout);
afterAll(() => petstore?.stop());

const protocols: Record<string, (baseUrl: string) => Transport> = {
  gRPC: (baseUrl) => openGrpc(baseUrl).transport,
  "gRPC-Web over HTTP/2": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  "gRPC-Web over HTTP/1.1": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect over HTTP/2": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }),
  "Connect over HTTP/1.1": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect in JSON": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
};
/** A call that is left open would keep a test from ending. */
async function during<R>(work: (signal: AbortSignal) => Promise<R>): Promise<R> {
  const gone = new AbortController();
  try {
    return await work(gone.signal);
  } finally {
    gone.abort();
  }
}
const codeOf = async (call: Promise<unknown>) =>
  ConnectError.from(
    await call.then(
      () => expect.fail("no error"),
      (thrown) => thrown,
    ),
  ).code;

describe.each(Object.entries(protocols))("by %s", (_, transportTo) => {
  test("changes come as they happen, after a snapshot, until the caller has enough", { timeout }, async () => {
    const pets = createClient(PetService, transportTo(petstore.url("pet")));
    const category = await shop.category();
    const before = await shop.pet({ categoryId: category.id });
    await during(async (signal) => {
      const changes = watching(pets.watchPets({ categoryId: category.id, snapshot: true }, { signal }));
      expect((await changes.take(3)).map(brief)).toEqual(["heartbeat", expect.stringMatching(/^PRESENT/), "synced"]);
      const pet = await shop.pet({ categoryId: category.id });
      const [created] = await changes.events(1);
      expect([created?.type, created?.pet]).toEqual([EventType.CREATED, pet]);
      await shop.order({ petId: before.id });
      const [ordered] = await changes.events(1);
      expect(ordered?.pet).toMatchObject({ id: before.id, status: PetStatus.PENDING });
      expect((await shop.pets.getPet({ petId: before.id })).pet).toEqual(ordered?.pet);
      await shop.pets.deletePet({ petId: pet.id });
      const [deleted] = await changes.events(1);
      expect([deleted?.type, deleted?.pet]).toEqual([EventType.DELETED, pet]);
    });
  });

  test("the caller's own deadline ends the stream, and a bad token is refused", { timeout }, async () => {
    const pets = createClient(PetService, transportTo(petstore.url("pet")));
    const late = watching(pets.watchPets({}, { timeoutMs: 500 }));
    expect(await codeOf(late.rest())).toBe(Code.DeadlineExceeded);
    expect(await codeOf(watching(pets.watchPets({ resumeToken: "x" })).first())).toBe(Code.InvalidArgument);
    const [orders] = await watching(shop.orders.watchOrders({}, { timeoutMs: 5_000 })).take(1);
    const { resumeToken } = orders ?? expect.fail("no message");
    expect(await codeOf(watching(pets.watchPets({ resumeToken })).first())).toBe(Code.InvalidArgument);
  });
});

test("every service tells its part of what one order does", { timeout }, async () => {
  const pet = await shop.stocked(2);
  await during(async (signal) => {
    const orders = watching(shop.orders.watchOrders({ petId: [pet.id] }, { signal }));
    const stock = watching(shop.inventory.watchInventory({ petId: [pet.id] }, { signal }));
    const pets = watching(shop.pets.watchPets({ petId: [pet.id] }, { signal }));
    const categories = watching(shop.categories.watchCategories({ categoryId: [pet.categoryId] }, { signal }));
    await Promise.all([orders.first(), stock.first(), pets.first(), categories.first()]);
    const one = await shop.order({ petId: pet.id, quantity: 2 });
    await shop.orders.deleteOrder({ orderId: one.id });
    const two = await shop.order({ petId: pet.id, quantity: 1 });
    const { order: done } = await shop.orders.updateOrder({ orderId: two.id, order: { complete: true } });
    await shop.categories.updateCategory({ categoryId: pet.categoryId, category: { name: "renamed" } });

    const told = (await orders.events(4)).map(({ type, order }) => [type, order]);
    const { CREATED, DELETED, UPDATED } = EventType;
    expect(told).toEqual([
      [CREATED, one],
      [DELETED, one],
      [CREATED, two],
      [UPDATED, done],
    ]);
    expect((await stock.events(3)).map(({ item }) => item?.quantity)).toEqual([0, 2, 1]);
    // What follows from the stock may come to a pet late, and then only as it was in the end.
    const last = (await pets.events(1)).at(-1);
    expect(last?.pet?.id).toBe(pet.id);
    expect((await categories.events(1)).map(({ category }) => category?.name)).toEqual(["renamed"]);
  });
});

/** Reads on from a token, and gives back what the names were. */
const namesFrom = (at: Petstore, resumeToken: string, categoryId: bigint, count: number, which: Which = "category") =>
  during(async (signal) => {
    const categories = createClient(CategoryService, openGrpc(at.url(which)).transport);
    const changes = watching(categories.watchCategories({ resumeToken, categoryId: [categoryId] }, { signal }));
    return (await changes.events(count)).map(({ category }) => category?.name);
  });
const rename = (at: Shop, categoryId: bigint, name: string) =>
  at.categories.updateCategory({ categoryId, category: { name } });

test("a process that stops ends its streams with a place to go on from", { timeout }, async () => {
  const { id } = await shop.category();
  const categories = createClient(CategoryService, openGrpc(petstore.url("category")).transport);
  const changes = watching(categories.watchCategories({ categoryId: [id] }));
  await changes.first();
  await rename(shop, id, "a");
  // Told before the stop: what is not, is told behind the place where the stream ends.
  expect((await changes.take(1)).map(brief)).toEqual([expect.stringMatching(/^UPDATED/)]);
  const rest = changes.rest();
  await petstore.kill("category", "SIGTERM");
  const [last, ...more] = await rest;
  expect([last && brief(last), more]).toEqual(["heartbeat", []]);
  await petstore.start("category");
  await rename(shop, id, "b");
  expect(await namesFrom(petstore, last?.resumeToken ?? "", id, 1)).toEqual(["b"]);
});

test("nothing is missed when a process is killed and started again", { timeout }, async () => {
  const { id } = await shop.category();
  const categories = createClient(CategoryService, openGrpc(petstore.url("category")).transport);
  const changes = watching(categories.watchCategories({ categoryId: [id] }));
  const { resumeToken } = await changes.first();
  for (const name of ["a", "b"]) await rename(shop, id, name);
  const [first] = await changes.take(1);
  const end = changes.rest().catch(ConnectError.from);
  await petstore.kill("category");
  expect(await end).toBeInstanceOf(ConnectError);
  await petstore.start("category");
  await rename(shop, id, "c");
  expect(await namesFrom(petstore, resumeToken, id, 3)).toEqual(["a", "b", "c"]);
  expect(await namesFrom(petstore, first?.resumeToken ?? "", id, 2)).toEqual(["b", "c"]);
});

test.skipIf(mongodbMissing)("another replica goes on from a token", { timeout }, async () => {
  await using both = await startPetstore({ replicas: 2 });
  const two = openShop(both);
  const { id } = await two.category();
  const { resumeToken } = await during(async (signal) => {
    const categories = createClient(CategoryService, openGrpc(both.url("category-1")).transport);
    return watching(categories.watchCategories({}, { signal })).first();
  });
  for (const name of ["a", "b", "c"]) await rename(two, id, name);
  const [one, other] = await Promise.all(
    (["category-1", "category-2"] as const).map((which) => namesFrom(both, resumeToken, id, 3, which)),
  );
  expect([one, other]).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
});
