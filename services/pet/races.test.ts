/** Races of concurrent requests: each waits where the test says, on a store and peers that are slow. */
import { Code, ConnectError } from "@connectrpc/connect";
import type { Store } from "@petstore/store/port";
import { beforeEach, expect, test } from "vitest";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { Membership, PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { PeersOf } from "../create.ts";
import { failure, startTestService, type TestService } from "../records/fixtures/service.ts";
import type { Deps } from "../records/module.ts";
import { createPetService } from "./service.ts";

const free = () => ({
  state: CategoryState.ACTIVE as CategoryState,
  op: 0n,
  categoryDown: false,
  /** No category. */
  nowhere: 99n,
  rev: 0n,
  opening: undefined as Promise<void> | undefined,
  listing: undefined as Promise<void> | undefined,
  update: undefined as Promise<void> | undefined,
  joiningList: undefined as Promise<void> | undefined,
});
let world = free();

const peers = {
  categories: {
    async getCategoryState({ categoryId }: { categoryId: bigint }) {
      if (world.categoryDown) throw new ConnectError("down", Code.Unavailable);
      if (categoryId === world.nowhere) return { state: CategoryState.DELETED, op: 0n };
      return { state: world.state, op: world.op };
    },
  },
  inventory: {
    async open({ listing }: { listing: PetStatus }) {
      await world.opening;
      return { outcome: Outcome.OK, stock: { status: listing, statusRev: ++world.rev } };
    },
    async setListing({ listing }: { listing: PetStatus }) {
      await world.listing;
      await new Promise((resolve) => setImmediate(resolve));
      return { outcome: Outcome.OK, stock: { status: listing, statusRev: ++world.rev } };
    },
  },
} as unknown as PeersOf<"pet">;

/** A store whose updates, and whose list of those that are joining, come when the test says. */
const slowStore = (store: Store): Store => ({
  ...store,
  async collection(schema) {
    const collection = await store.collection(schema);
    return {
      ...collection,
      async list(query, options) {
        if (query.where && "joining" in query.where) await world.joiningList;
        return collection.list(query, options);
      },
      async update(...change) {
        await world.update;
        return collection.update(...change);
      },
    };
  },
});

let service: TestService;
beforeEach(async () => {
  world = free();
  const build = (deps: Deps) => createPetService({ ...deps, store: slowStore(deps.store) }, peers);
  service = await startTestService(build);
});
const pets = () => service.client(PetService);
const internal = () => service.client(PetInternalService);
const rex = { name: "Rex", categoryId: 7n };
const make = async () => (await pets().createPet({ pet: rex })).pet?.id ?? 0n;
const settled = () => new Promise((resolve) => setTimeout(resolve, 10));

test("race: a pet that joins between the two looks for members is seen", async () => {
  const petId = await make();
  const listing = Promise.withResolvers<void>();
  const joiningList = Promise.withResolvers<void>();
  Object.assign(world, { listing: listing.promise, joiningList: joiningList.promise });
  const moving = pets().updatePet({ petId, pet: { ...rex, categoryId: 8n, status: PetStatus.SOLD } });
  await settled();
  const closing = internal().closeCategory({ categoryId: 8n, op: 1n });
  await settled();
  listing.resolve();
  expect((await moving).pet?.categoryId).toBe(8n);
  joiningList.resolve();
  expect((await closing).membership).toBe(Membership.SOME);
});

test("race: a pet that is created while it is moved is not moved to a category that does not exist", async () => {
  const [opening, update] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  world.opening = opening.promise;
  const creating = make();
  await settled();
  world.update = update.promise;
  const moving = failure(pets().updatePet({ petId: 1n, pet: { ...rex, categoryId: world.nowhere } }));
  await settled();
  world.update = undefined;
  opening.resolve();
  expect(await creating).toBe(1n);
  update.resolve();
  expect(await moving).toBe("CATEGORY_NOT_FOUND");
  expect((await pets().getPet({ petId: 1n })).pet?.categoryId).toBe(7n);
});

test("concurrent writers wait for each other", async () => {
  const petId = await make();
  const status = (i: number) => (i % 2 ? PetStatus.SOLD : PetStatus.PENDING);
  const writes = Array.from({ length: 10 }, (_, i) => pets().updatePet({ petId, pet: { ...rex, status: status(i) } }));
  expect(await Promise.all(writes.map(failure))).toEqual(writes.map(() => undefined));
});

test("a move that finds the deletion guard closed waits; the next writer gets 409, not 503", async () => {
  const petId = await make();
  service.crashAt("pet.intent");
  await failure(pets().updatePet({ petId, pet: { ...rex, categoryId: 9n } }));
  service.crashAt(undefined);
  await internal().closeCategory({ categoryId: 9n, op: 1n });
  Object.assign(world, { state: CategoryState.DELETING, op: 1n });
  const rename = { petId, pet: { name: "Tom" }, updateMask: { paths: ["name"] } };
  expect(await failure(pets().updatePet(rename))).toBe("CONCURRENT_UPDATE");
  world.state = CategoryState.DELETED;
  expect((await pets().updatePet(rename)).pet).toMatchObject({ name: "Tom", categoryId: 7n });
});

test("race: a guard that a later deletion closed is not opened for the one that stepped back", async () => {
  const petId = await make();
  await internal().closeCategory({ categoryId: 9n, op: 2n });
  Object.assign(world, { state: CategoryState.ACTIVE, op: 1n });
  expect(await failure(pets().updatePet({ petId, pet: { ...rex, categoryId: 9n } }))).toBe("CONCURRENT_UPDATE");
  expect((await internal().closeCategory({ categoryId: 9n, op: 2n })).membership).toBe(Membership.NONE);
});

test("Category is asked only where it has a say", async () => {
  const request = { pet: rex, requestId: "k" };
  const { pet } = await pets().createPet(request);
  await service.restart();
  world.categoryDown = true;
  expect((await pets().createPet(request)).pet).toEqual(pet);
  const petId = pet?.id ?? 0n;
  expect((await pets().updatePet({ petId, pet: { ...rex, name: "Tom" } })).pet?.name).toBe("Tom");
  expect(await failure(pets().updatePet({ petId: 99n, pet: rex }))).toBe("PET_NOT_FOUND");
});
