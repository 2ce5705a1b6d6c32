import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { beforeEach, describe, expect, test } from "vitest";
import { reasonOf } from "#errors";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { Membership, PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { PeersOf } from "../create.ts";
import { withReads } from "../records/fixtures/reads.ts";
import { failure, startTestService, type TestService, testClock } from "../records/fixtures/service.ts";
import { typeName, watching } from "../records/fixtures/watching.ts";
import { createPetService } from "./service.ts";

/** Peers that answer what a test says, and remember what they were asked. */
const peers = {
  state: CategoryState.ACTIVE as CategoryState,
  op: 0n,
  outcome: Outcome.OK as Outcome,
  down: "" as string,
  error: undefined as ConnectError | undefined,
  asked: [] as string[],
  rev: 0n,
};
function ask<T>(call: string, answer: () => T): Promise<T> {
  peers.asked.push(call);
  if (peers.down === call) return Promise.reject(peers.error ?? new ConnectError("down", Code.Unavailable));
  return Promise.resolve(answer());
}
const stock = (status: PetStatus) => ({ status, statusRev: ++peers.rev });
const fakes = {
  categories: { getCategoryState: () => ask("state", () => ({ state: peers.state, op: peers.op })) },
  inventory: {
    open: ({ listing }: { listing: PetStatus }) => ask("open", () => ({ outcome: Outcome.OK, stock: stock(listing) })),
    setListing: ({ listing }: { listing: PetStatus }) =>
      ask("setListing", () => ({ outcome: peers.outcome, stock: stock(listing) })),
    retire: () => ask("retire", () => ({ outcome: peers.outcome })),
  },
} as unknown as PeersOf<"pet">;

let service: TestService;
beforeEach(async () => {
  Object.assign(peers, {
    state: CategoryState.ACTIVE,
    op: 0n,
    outcome: Outcome.OK,
    down: "",
    error: undefined,
    asked: [],
    rev: 0n,
  });
  service = await startTestService((deps) => createPetService(deps, fakes));
});
const pets = () => service.client(PetService);
const internal = () => service.client(PetInternalService);
const rex = { name: "Rex", categoryId: 7n };
const make = async () => (await pets().createPet({ pet: rex })).pet?.id ?? 0n;
const close = (op: bigint, categoryId = 7n) => internal().closeCategory({ categoryId, op });

describe("CreatePet", () => {
  test("asks Category once, opens the inventory entry, and is there", async () => {
    const { pet } = await pets().createPet({ pet: rex });
    expect(pet).toMatchObject({ ...rex, id: 1n, status: PetStatus.AVAILABLE, etag: '"1"' });
    await make();
    expect(peers.asked).toEqual(["state", "open", "open"]);
  });

  test("in a category that does not exist costs nothing", async () => {
    peers.state = CategoryState.DELETED;
    expect(await failure(pets().createPet({ pet: rex }))).toBe("CATEGORY_NOT_FOUND");
    expect(await failure(pets().createPet({ pet: { ...rex, categoryId: 2n ** 60n } }))).toBe("CATEGORY_NOT_FOUND");
    expect(peers.asked).toEqual(["state"]);
    peers.state = CategoryState.ACTIVE;
    expect(await make()).toBe(1n);
  });

  test("under a key is refused for good: the refusal binds the key", async () => {
    const keyed = (pet: object, requestId: string) => pets().createPet({ pet, requestId });
    const far = { ...rex, categoryId: 2n ** 60n };
    expect(await failure(keyed(far, "far"))).toBe("CATEGORY_NOT_FOUND");
    peers.state = CategoryState.DELETED;
    expect(await failure(keyed(rex, "k"))).toBe("CATEGORY_NOT_FOUND");
    peers.state = CategoryState.ACTIVE;
    expect(await failure(keyed(far, "far"))).toBe("CATEGORY_NOT_FOUND");
    const again = await keyed(rex, "k").then(() => expect.unreachable("made"), ConnectError.from);
    expect([reasonOf(again)?.reason, again.metadata.get("idempotent-replayed")]).toEqual([
      "CATEGORY_NOT_FOUND",
      "true",
    ]);
    expect(await failure(keyed({ ...rex, name: "Max" }, "k"))).toBe("IDEMPOTENCY_KEY_REUSED");
    expect((await pets().listPets({})).pets).toEqual([]);
    await service.restart();
    expect(await failure(keyed(rex, "k"))).toBe("CATEGORY_NOT_FOUND");
  });

  test("under a key in a category that is just being deleted waits, and is open", async () => {
    const keyed = (requestId: string) => pets().createPet({ pet: rex, requestId });
    await make();
    await close(1n);
    peers.state = CategoryState.DELETING;
    // Not CONCURRENT_UPDATE: another attempt with the key may still create the pet.
    for (let time = 0; time < 2; time++) expect(await failure(keyed("k"))).toBe("UNAVAILABLE");
    Object.assign(peers, { state: CategoryState.ACTIVE, op: 1n });
    expect(await failure(keyed("k"))).toBeUndefined();
  });

  test("claims first and checks then: a deletion guard that closed in between is seen (race)", async () => {
    await make();
    await close(1n);
    peers.state = CategoryState.DELETED;
    expect(await failure(pets().createPet({ pet: rex }))).toBe("CATEGORY_NOT_FOUND");
    peers.state = CategoryState.DELETING;
    expect(await failure(pets().createPet({ pet: rex }))).toBe("CONCURRENT_UPDATE");
    Object.assign(peers, { state: CategoryState.ACTIVE, op: 1n });
    expect(await failure(pets().createPet({ pet: rex }))).toBeUndefined();
  });

  test("that finds the deletion guard closed is unknown, never refused: it may still be created", async () => {
    peers.down = "open";
    expect(await failure(pets().createPet({ pet: rex }))).toBe("UNAVAILABLE");
    expect((await close(1n)).membership).toBe(Membership.SOME);
    peers.state = CategoryState.DELETING;
    peers.down = "";
    await service.runWorkers();
    expect((await pets().listPets({})).pets).toEqual([]);
    Object.assign(peers, { state: CategoryState.ACTIVE, op: 1n });
    await service.runWorkers();
    expect((await pets().listPets({})).pets).toHaveLength(1);
  });

  test("a replay is the first answer, also when the pet has changed or is gone", async () => {
    const request = { pet: { ...rex, status: PetStatus.PENDING }, requestId: "k" };
    const first = await pets().createPet(request);
    await pets().updatePet({ petId: first.pet?.id ?? 0n, pet: { ...rex, name: "Max" } });
    expect(await pets().createPet(request)).toEqual(first);
    await pets().deletePet({ petId: first.pet?.id ?? 0n });
    expect(await pets().createPet(request)).toEqual(first);
    expect(await failure(pets().createPet({ ...request, pet: rex }))).toBe("IDEMPOTENCY_KEY_REUSED");
  });
});

describe("UpdatePet", () => {
  test("shows the status that follows from it", async () => {
    const petId = await make();
    const { pet } = await pets().updatePet({ petId, pet: { ...rex, status: PetStatus.SOLD } });
    expect(pet).toMatchObject({ status: PetStatus.SOLD, etag: '"2"' });
    expect((await pets().getPet({ petId })).pet).toEqual(pet);
  });

  test("without a status leaves the listing alone", async () => {
    await pets().updatePet({ petId: await make(), pet: { ...rex, name: "Max" } });
    expect(peers.asked).not.toContain("setListing");
  });

  test("to available without stock is refused and changes nothing, not even the name", async () => {
    const petId = await make();
    peers.outcome = Outcome.INSUFFICIENT_STOCK;
    const request = { petId, pet: { ...rex, name: "Max", status: PetStatus.AVAILABLE } };
    expect(await failure(pets().updatePet(request))).toBe("INSUFFICIENT_STOCK");
    expect((await pets().getPet({ petId })).pet).toMatchObject({ name: "Rex", etag: '"1"' });
  });

  test("that has little time is begun, and never refused for other writes where there are none", async () => {
    const [petId, timeoutMs] = [await make(), 90];
    const reasons = [
      await failure(pets().updatePet({ petId, pet: { ...rex, name: "Max" } }, { timeoutMs })),
      await failure(pets().deletePet({ petId: 99n }, { timeoutMs })),
    ];
    expect(reasons).not.toContain("CONCURRENT_UPDATE");
  });

  test("into a category that does not exist is judged after the pet and its revision", async () => {
    const petId = await make();
    peers.state = CategoryState.DELETED;
    const pet = { ...rex, categoryId: 8n };
    expect(await failure(pets().updatePet({ petId: 99n, pet }))).toBe("PET_NOT_FOUND");
    expect(await failure(pets().updatePet({ petId, pet, etag: '"9"' }))).toBe("ETAG_MISMATCH");
    expect(await failure(pets().updatePet({ petId, pet }))).toBe("CATEGORY_NOT_FOUND");
  });

  test("keeps its new category from being deleted before it has arrived there", async () => {
    const petId = await make();
    peers.down = "setListing";
    const request = { petId, pet: { ...rex, categoryId: 8n, status: PetStatus.SOLD } };
    expect(await failure(pets().updatePet(request))).toBe("UNAVAILABLE");
    expect((await close(1n, 8n)).membership).toBe(Membership.SOME);
    expect((await close(1n, 7n)).membership).toBe(Membership.SOME);
    expect((await close(1n, 9n)).membership).toBe(Membership.NONE);
  });

  test("is finished by the next, concurrent writer before it writes itself", async () => {
    const petId = await make();
    peers.down = "setListing";
    await failure(pets().updatePet({ petId, pet: { ...rex, name: "Max", status: PetStatus.SOLD } }));
    expect((await pets().getPet({ petId })).pet?.name).toBe("Rex");
    peers.down = "";
    const { pet } = await pets().updatePet({ petId, pet: { name: "Tom" }, updateMask: { paths: ["name"] } });
    expect(pet).toMatchObject({ name: "Tom", status: PetStatus.SOLD, etag: '"3"' });
  });

  test("changes nothing that Inventory has not taken, whatever it says", async () => {
    const petId = await make();
    peers.outcome = Outcome.STALE;
    const request = { petId, pet: { ...rex, name: "Max", status: PetStatus.SOLD } };
    expect(await failure(pets().updatePet(request))).toBe("UNAVAILABLE");
    expect((await pets().getPet({ petId })).pet).toMatchObject({ ...rex, status: PetStatus.AVAILABLE });
  });
});

describe("DeletePet", () => {
  test("keeps the pet whose entry Inventory has not retired, whatever it says", async () => {
    const petId = await make();
    peers.outcome = Outcome.STALE;
    expect(await failure(pets().deletePet({ petId }))).toBe("UNAVAILABLE");
    peers.outcome = Outcome.OPEN_ORDERS;
    expect((await pets().getPet({ petId })).pet).toMatchObject(rex);
  });

  test("needs no inventory entry: what was lost there must not keep the pet", async () => {
    const petId = await make();
    peers.outcome = Outcome.NOT_FOUND;
    await pets().deletePet({ petId });
    expect(await failure(pets().getPet({ petId }))).toBe("PET_NOT_FOUND");
  });

  test("retires the inventory entry; the pet is gone for good and its category is free", async () => {
    const petId = await make();
    await pets().deletePet({ petId });
    expect(peers.asked).toContain("retire");
    expect(await failure(pets().getPet({ petId }))).toBe("PET_NOT_FOUND");
    expect(await failure(pets().deletePet({ petId }))).toBe("PET_NOT_FOUND");
    expect((await close(1n)).membership).toBe(Membership.NONE);
  });

  test("with open orders is refused, and the pet is as it was", async () => {
    const petId = await make();
    peers.outcome = Outcome.OPEN_ORDERS;
    expect(await failure(pets().deletePet({ petId }))).toBe("PET_HAS_OPEN_ORDERS");
    expect((await pets().getPet({ petId })).pet?.etag).toBe('"1"');
  });
});

describe("a deletion that a crash interrupted", () => {
  const single = (petId: bigint) => [
    () =>
      pets()
        .getPet({ petId })
        .then(({ pet }) => [pet?.id], none),
    async () => (await pets().batchGetPets({ petId: [petId] })).pets.map(({ id }) => id),
    async () => (await pets().listPets({ id: [petId] })).pets.map(({ id }) => id),
  ];
  const lists = [
    async () => (await pets().listPets({})).pets.map(({ id }) => id),
    async () => (await pets().listPets({ categoryId: 7n, status: [PetStatus.AVAILABLE] })).pets.map(({ id }) => id),
  ];
  const readings = (petId: bigint) => [...single(petId), ...lists];
  const none = (error: ConnectError) => {
    if (reasonOf(error)?.reason !== "PET_NOT_FOUND") throw error;
    return [];
  };
  const leftOff = async () => {
    const petId = await make();
    service.crashAt("pet.retired-inventory");
    expect(await failure(pets().deletePet({ petId }))).toBe("UNAVAILABLE");
    service.crashAt(undefined);
    return petId;
  };

  test("is finished by the first read that finds it", async () => {
    for (const place of readings(0n).keys()) expect(await readings(await leftOff())[place]?.()).toEqual([]);
  });

  test("is unknown to who asks by id while Inventory does not answer, and shown as refused when it is", async () => {
    const petId = await leftOff();
    peers.down = "retire";
    for (const read of single(petId)) expect(await failure(read())).toBe("UNAVAILABLE");
    Object.assign(peers, { down: "", outcome: Outcome.OPEN_ORDERS });
    for (const read of readings(petId)) expect(await read()).toEqual([petId]);
  });

  test("that stays undecided is left out of lists, and told by a watch only when it is decided", async () => {
    const [petId, other] = [await leftOff(), await make()];
    peers.down = "retire";
    for (const list of lists) expect(await list()).toEqual([other]);
    const watch = watching(pets().watchPets({ snapshot: true }));
    const told = async (count: number) => (await watch.events(count)).map(({ type, pet }) => [typeName(type), pet?.id]);
    expect(await told(2)).toEqual([
      ["PRESENT", petId],
      ["PRESENT", other],
    ]);
    peers.down = "";
    await service.runWorkers();
    expect(await told(1)).toEqual([["DELETED", petId]]);
  });

  test("costs a list a second, or half of its time, when Inventory is silent", async () => {
    const waited: number[] = [];
    const time = testClock();
    const silent = (_: unknown, { timeoutMs }: { timeoutMs: number }) => {
      waited.push(timeoutMs);
      time.advance(timeoutMs);
      return Promise.reject(new ConnectError("too late", Code.DeadlineExceeded));
    };
    service = await startTestService(
      (deps) => createPetService(deps, { ...fakes, inventory: { ...fakes.inventory, retire: silent } } as never),
      time,
    );
    const many = [await make(), await make(), await make()];
    for (const petId of many) expect(await failure(pets().deletePet({ petId }))).toBe("UNAVAILABLE");
    const other = await make();
    for (const [timeoutMs, wait] of [
      [5_000, 1_000],
      [600, 300],
    ] as const) {
      waited.length = 0;
      const { pets: found } = await pets().listPets({ limit: 1 + many.length }, { timeoutMs });
      expect([found.map(({ id }) => id), waited]).toEqual([[other], [wait]]);
    }
  });

  const unreadable = { desc: ErrorInfoSchema, value: { reason: "INTERNAL", domain: "petstore" } };
  test("leaves pages as long as they are without it, whatever is wrong with its stock", async () => {
    const [first, second, , fourth] = [await make(), await make(), await leftOff(), await make(), await leftOff()];
    const walk = async () => {
      const ids = [];
      for (let pageToken = "", more = true; more; more = pageToken !== "") {
        const page = await pets().listPets({ limit: 1, pageToken });
        expect(page.pets).toHaveLength(1);
        ids.push(...page.pets.map(({ id }) => id));
        pageToken = page.nextPageToken;
      }
      return ids;
    };
    for (const error of [undefined, new ConnectError("sorry", Code.Internal, undefined, [unreadable])]) {
      Object.assign(peers, { down: "retire", error });
      expect(await walk()).toEqual([fourth, second, first]);
    }
    peers.down = "";
    expect(await walk()).toEqual([fourth, second, first]);
  });

  test("keeps its category from being deleted only as long as it can't be carried out", async () => {
    await leftOff();
    peers.down = "retire";
    expect((await close(1n)).membership).toBe(Membership.SOME);
    peers.down = "";
    expect((await close(2n)).membership).toBe(Membership.NONE);
    peers.op = 2n;
    const stays = [await leftOff(), await make()];
    expect((await close(3n)).membership).toBe(Membership.SOME);
    expect((await pets().listPets({})).pets.map(({ id }) => id)).toEqual(stays.slice(1));
  });
});

describe("the deletion guard", () => {
  test("is opened and closed by the newest deletion only", async () => {
    expect((await close(2n)).membership).toBe(Membership.NONE);
    expect((await close(1n)).membership).toBe(Membership.STALE);
    await internal().openCategory({ categoryId: 7n, op: 1n });
    expect((await close(2n)).membership).toBe(Membership.NONE);
    await internal().openCategory({ categoryId: 7n, op: 2n });
    expect((await close(2n)).membership).toBe(Membership.STALE);
  });
});

/** Crash recovery: every operation crashes at each of its failpoints, and a new process goes on. */
describe("a crash", () => {
  const operations: Record<string, (petId: bigint) => Promise<unknown>> = {
    create: () => pets().createPet({ pet: { ...rex, name: "new" }, requestId: "new" }),
    move: (petId) => pets().updatePet({ petId, pet: { ...rex, categoryId: 8n, status: PetStatus.SOLD } }),
    delete: (petId) => pets().deletePet({ petId }),
  };
  const failpoints: [string, string][] = [
    ...["key.id-taken", "key.claimed", "pet.creating", "pet.guard-checked", "pet.opened-inventory"].map(
      (p): [string, string] => ["create", p],
    ),
    ...["pet.intent", "pet.guard-checked", "pet.set-listing"].map((p): [string, string] => ["move", p]),
    ...["pet.intent", "pet.retired-inventory"].map((p): [string, string] => ["delete", p]),
  ];
  test.each(failpoints)("during %s at %s is recovered: nothing is stuck", async (operation, failpoint) => {
    const petId = await make();
    service.crashAt(failpoint);
    expect(await failure(operations[operation]?.(petId) as Promise<unknown>)).toBe("UNAVAILABLE");
    service.crashAt(undefined);
    await service.restart();
    await service.runWorkers();
    const { pets: left } = await pets().listPets({});
    if (operation === "move") expect(left).toMatchObject([{ categoryId: 8n, status: PetStatus.SOLD }]);
    else if (operation === "delete") expect(left).toEqual([]);
    // Before the record is written there is nothing to finish. Asking again makes it, or finds it.
    else expect(left).toHaveLength(failpoint.startsWith("key.") ? 1 : 2);
    if (operation !== "create") return;
    await operations.create?.(petId);
    expect((await pets().listPets({})).pets.filter(({ name }) => name === "new")).toHaveLength(1);
  });
});

test("ApplyStatuses changes the pets that it can and names them; it fails when that is none", async () => {
  const id = await make();
  const sold = (petId: bigint) => ({ petId, status: PetStatus.SOLD, statusRev: 9n });
  expect((await internal().applyStatuses({ statuses: [sold(99n), sold(id)] })).petId).toEqual([id]);
  expect((await pets().getPet({ petId: id })).pet?.status).toBe(PetStatus.SOLD);
  expect((await internal().applyStatuses({})).petId).toEqual([]);
  expect(await failure(internal().applyStatuses({ statuses: [sold(99n)] }))).toBe("PET_NOT_FOUND");
});

test("GetPet asks for the latest state only when it finishes a deletion that a crash interrupted", async () => {
  const read: (boolean | undefined)[] = [];
  service = await startTestService((deps) => {
    const store = withReads(deps.store, (_, { latest }) => void read.push(latest));
    return createPetService({ ...deps, store }, fakes);
  });
  const petId = await make();
  read.length = 0;
  await pets().getPet({ petId });
  expect(read).toEqual([undefined]);
  peers.down = "retire";
  expect(await failure(pets().deletePet({ petId }))).toBe("UNAVAILABLE");
  peers.down = "";
  read.length = 0;
  expect(await failure(pets().getPet({ petId }))).toBe("PET_NOT_FOUND");
  expect([read[0], read.at(-1)]).toEqual([undefined, true]);
});
