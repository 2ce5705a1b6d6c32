/**
 * Real processes, killed for real: every operation, at every named point that it passes, in the process that passes it.
 * The points come from running each operation once in a simulation, so a new point on its way gets its case by itself; a
 * new point that no operation passes fails the test below.
 */
import { globSync, readFileSync } from "node:fs";
import { SECRET_HEADER } from "@petstore/rpc/call";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InventoryInternalService } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { ServiceName } from "../../processes/names.ts";
import { eventually } from "../harness/eventually.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { SECRET } from "../harness/processes.ts";
import { BETWEEN_LOOKS_MS, wrongInTheStores } from "../harness/stores.ts";
import { type Client, createClient, leftBehind } from "../workload/client.ts";
import { performOverHttp, readOverHttp } from "../workload/http.ts";
import { kindOf, type Operation } from "../workload/operations.ts";
import type { Outcome } from "../workload/perform.ts";
import { record } from "../workload/recording.ts";
import { scenarios } from "../workload/scenarios.ts";
import { dying, dyingAt } from "./crash-at-failpoint.ts";

const recordings = await Promise.all(scenarios.map(async (scenario) => ({ scenario, ...(await record(scenario)) })));
const cases = recordings.flatMap((recording) =>
  recording.points.map(([service, point]) => ({ ...recording, service: service as ServiceName, point })),
);
/** Points that only what a crash has left behind leads to; they have cases of their own. */
const afterCrashes = ["guard.left-closed", "inventory.reservation-ended"];

test("every point in the code has a case", () => {
  const code = globSync("services/**/*.ts")
    .filter((path) => !path.endsWith(".test.ts"))
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
  const named = [...code.matchAll(/(?:point\(|change\([^;]*?)"([a-z]+\.[a-z-]+)"/g)].map(([, point]) => point);
  expect([...new Set(named)].sort()).toEqual(
    [...new Set([...cases.map(({ point }) => point), ...afterCrashes])].sort(),
  );
});

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore?.stop());

const newClient = () => createClient((operation) => performOverHttp(petstore.http, operation));

const left = ({ known }: Client) => leftBehind(known, (kind, id) => readOverHttp(petstore.http, kind, id));

/** Writes once more to every record that is still there. */
async function writeToAll({ known }: Client): Promise<Outcome[]> {
  const writes = [
    ...known.category.map((id) => ({ do: "rename category", id, mark: id }) as const),
    ...known.pet.map((id) => ({ do: "change pet", id, mark: id }) as const),
    ...known.pet.map((id) => ({ do: "stock", id, quantity: 7, mark: id }) as const),
    ...known.order.map((id) => ({ do: "date order", id, mark: id }) as const),
  ];
  const outcomes = [];
  for (const write of writes)
    if (await readOverHttp(petstore.http, kindOf(write), write.id))
      outcomes.push(await performOverHttp(petstore.http, write));
  return outcomes;
}

/** All that was told to clients, to be looked at again when everything is over. */
const told: { readonly client: Client; readonly left: Awaited<ReturnType<typeof left>> }[] = [];

/** What a client has been told, with each pet at the status that its inventory entry has: it follows soon. */
function followed(records: Awaited<ReturnType<typeof left>>): typeof records {
  const follow = ([name, view]: [string, (typeof records)[string]]) => {
    const stock = name.startsWith("pet ") ? records[name.replace("pet", "inventory")] : undefined;
    return [name, view && stock ? { ...view, status: stock.status } : view] as const;
  };
  return Object.fromEntries(Object.entries(records).map(follow));
}

const endOf = (outcome: Outcome) => (outcome.is === "refused" ? outcome.reason : outcome.is);

test.each(cases)(
  "$scenario.name: $service killed at $point",
  async (a) => {
    const { scenario, service, point } = a;
    const client = newClient();
    for (const operation of scenario.before) expect((await client.do(operation)).is).toBe("done");
    const { key } = scenario.act;
    const act = { ...scenario.act, ...(key && { key: `${key}-${service}-${point}` }) };
    const first = await dying(petstore, service, point, () => client.once(act));
    expect([endOf(a.outcome), "unknown"]).toContain(endOf(first));
    if (key !== undefined) {
      const again = await client.do(act);
      expect(endOf(again)).toBe(endOf(a.outcome));
      if (first.is === "done") expect(again).toEqual(first);
    }
    await eventually(() => left(client), a.left);
    expect((await writeToAll(client)).filter(({ is }) => is !== "done")).toEqual([]);
    told.push({ client, left: followed(await left(client)) });
  },
  120_000,
);

describe("what a crash leaves behind, met by the next crash", () => {
  test("pet killed while it opens a deletion guard that was left closed", async () => {
    const client = newClient();
    for (const operation of categoryInUse) await client.do(operation);
    await dying(petstore, "category", "category.active-again", () =>
      client.once({ do: "delete category", id: 0, mark: 3 }),
    );
    const pet = { do: "create pet", category: 0, mark: 4, key: "left-closed" } as const;
    expect((await dying(petstore, "pet", "guard.left-closed", () => client.once(pet))).is).toBe("unknown");
    expect((await client.do(pet)).is).toBe("done");
    expect((await client.do({ ...pet, mark: 5, key: "another" })).is).toBe("done");
  });

  test("inventory killed while it gives back what an order that has ended still holds", async () => {
    const client = newClient();
    for (const operation of [...categoryInUse, orderWithoutPet, cancelIt]) await client.do(operation);
    const [petId = 0] = client.known.pet;
    const [orderId = 0] = client.known.order;
    const inventory = petstore.client(InventoryInternalService);
    const names = { petId: BigInt(petId), orderId: BigInt(orderId), quantity: 1, tag: "late" };
    await inventory.reserve(names, { headers: { [SECRET_HEADER]: SECRET } });
    expect(await quantityOf(petId)).toBe(0);
    await petstore.kill("inventory", "SIGTERM");
    await petstore.start("inventory", { CRASH_AT: "inventory.reservation-ended" });
    await petstore.ended("inventory");
    await petstore.start("inventory");
    await eventually(() => quantityOf(petId), 1);
  });
});

describe("a deletion that is left off after its decision", () => {
  /** Does it, dying at the point. Then the service is back, and Inventory is not, so that nothing goes on. */
  async function leaveOff(client: Client, service: ServiceName, point: string, operation: Operation): Promise<void> {
    expect((await dyingAt(petstore, service, point, () => client.once(operation))).is).toBe("unknown");
    await petstore.kill("inventory");
    await petstore.start(service);
  }
  const statusOf = async (path: string) => (await fetch(petstore.http + path)).status;
  const listOf = async (path: string) => (await fetch(petstore.http + path)).json();

  test("is a pet that no read shows any more", async () => {
    const client = newClient();
    for (const operation of categoryInUse) await client.do(operation);
    const [id] = client.known.pet;
    const [categoryId] = client.known.category;
    await leaveOff(client, "pet", "pet.retired-inventory", { do: "delete pet", id: 0, mark: 3 });
    for (const path of [`/pets/${id}`, `/pets?id=${id}`]) expect([path, await statusOf(path)]).toEqual([path, 503]);
    // A list leaves out what it can't decide: one deletion does not take it away from everybody.
    expect(await listOf(`/pets?categoryId=${categoryId}`)).toEqual([]);
    expect(await statusOf("/pets?limit=1")).toBe(200);
    await petstore.start("inventory");
    await eventually(() => statusOf(`/pets?id=${id}`), 200);
    expect(await (await fetch(`${petstore.http}/pets?id=${id}`)).json()).toEqual([]);
    expect(await statusOf(`/pets/${id}`)).toBe(404);
    expect((await client.once({ do: "delete category", id: 0, mark: 4 })).is).toBe("done");
  });

  test("is an order that is gone at once, and whose units come back", async () => {
    const client = newClient();
    for (const operation of [...categoryInUse, anOrder]) await client.do(operation);
    const [id] = client.known.order;
    const [petId = 0] = client.known.pet;
    await leaveOff(client, "order", "order.ended", cancelIt);
    expect(await statusOf(`/store/orders/${id}`)).toBe(404);
    for (const path of [`/store/orders?id=${id}`, `/store/orders?petId=${petId}`])
      expect([path, await listOf(path)]).toEqual([path, []]);
    await petstore.start("inventory");
    await eventually(() => quantityOf(petId), 1);
  });
});

describe("a service that is to die", () => {
  test("is not waited for when its work was done without the point, and lives on", async () => {
    const client = newClient();
    const never = dying(petstore, "order", "category.deleting", () => client.once(orderWithoutPet));
    await expect(never).rejects.toThrow(/order did not come to category\.deleting: the answer was \{"is":"done"/);
    expect((await client.once(orderWithoutPet)).is).toBe("done");
  });

  test("dies at last of work that did not reach it at first", async () => {
    const client = newClient();
    let attempts = 0;
    const first = await dying(petstore, "order", "key.claimed", async () =>
      attempts++ === 0 ? { is: "unknown" } : client.once({ ...orderWithoutPet, key: "at-last" }),
    );
    expect([first.is, attempts]).toEqual(["unknown", 2]);
  });
});

test("a process is not killed by what a killed one has left over", async () => {
  const client = newClient();
  for (const operation of categoryInUse) await client.do(operation);
  const other = newClient();
  for (const operation of categoryInUse) await other.do(operation);
  await dyingAt(petstore, "pet", "pet.intent", () => client.once(deleteIt));
  await dying(petstore, "pet", "pet.retired-inventory", () => other.once(deleteIt));
  const [id = 0] = other.known.pet;
  await eventually(() => readOverHttp(petstore.http, "pet", id), undefined);
});

const categoryInUse: Operation[] = [
  { do: "create category", mark: 1 },
  { do: "create pet", category: 0, mark: 2 },
];
const anOrder: Operation = { do: "place order", pet: 0, quantity: 1, mark: 3 };
const orderWithoutPet: Operation = { do: "place order", quantity: 1, mark: 3 };
const deleteIt: Operation = { do: "delete pet", id: 0, mark: 4 };
const cancelIt: Operation = { do: "cancel order", id: 0, mark: 4 };
const quantityOf = async (petId: number) => (await readOverHttp(petstore.http, "inventory", petId))?.view.quantity;

test("in the end all that was told is there, and what is stored adds up", { timeout: 300_000 }, async () => {
  expect(told).toHaveLength(cases.length);
  for (const { client, left: before } of told) await eventually(() => left(client), before);
  await eventually(() => wrongInTheStores(petstore), [], BETWEEN_LOOKS_MS);
});
