/** Two of every process on one store: they share the work, and any one of them may go. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { processNames } from "../../processes/names.ts";
import { eventually } from "../harness/eventually.ts";
import { inTurn, type Which } from "../harness/instances.ts";
import { mongodbMissing } from "../harness/mongodb.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { readStores } from "../harness/stores.ts";
import { performOverHttp, readOverHttp } from "../workload/http.ts";
import type { Operation } from "../workload/operations.ts";
import type { Outcome } from "../workload/perform.ts";
import { clients, startSelling } from "../workload/selling.ts";

const timeout = 600_000;
const instances = processNames.flatMap((kind): Which[] => [`${kind}-1`, `${kind}-2`]);
const gateways = instances.filter((name) => name.startsWith("gateway"));
const services = instances.filter((name) => !name.startsWith("gateway"));

let petstore: Petstore;
beforeAll(async () => {
  if (!mongodbMissing) petstore = await startPetstore({ replicas: 2 });
}, timeout);
afterAll(() => petstore?.stop());

/** RPCs that a service has served, HTTP requests that a gateway has. */
const served = (name: Which): number =>
  petstore.logs(name).match(name.startsWith("gateway") ? /"path":"\/(pets|categories|store)/g : /"msg":"served"/g)
    ?.length ?? 0;

/** What clients met: 503s, requests that nobody answered, and the most that one operation met of both. */
let met = { refused: 0, unanswered: 0, most: 0 };

const nextGateway = inTurn(gateways);

/** Asks the other gateway after a 503, or when nobody answers. A 504 is the machine's: it is too busy now. */
async function insist(operation: Operation): Promise<Outcome> {
  let gateway = nextGateway();
  let trouble = 0;
  for (;;) {
    let status = 0;
    const send: typeof fetch = async (...request) => {
      const response = await fetch(...request);
      status = response.status;
      return response;
    };
    const outcome = await performOverHttp(petstore.url(gateway), operation, send).catch(() => undefined);
    if (outcome && outcome.is !== "unknown") return outcome;
    if (status !== 504) trouble++;
    if (status === 503) met.refused++;
    if (status === 0) met.unanswered++;
    met.most = Math.max(met.most, trouble);
    gateway = otherThan(gateway);
    await sleep(20);
  }
}
const otherThan = (gateway: Which): Which => gateways.find((other) => other !== gateway) ?? gateway;

const once = (operation: Operation, gateway: Which = nextGateway()) =>
  performOverHttp(petstore.url(gateway), operation);
/** For what a test needs before it begins: what was killed before may still be slow. */
async function make(operation: Operation): Promise<number> {
  const outcome = await insist(operation);
  return outcome.is === "done" && outcome.shown ? outcome.shown.id : expect.fail(JSON.stringify(outcome));
}
const makePet = async (mark: number) =>
  make({ do: "create pet", category: await make({ do: "create category", mark }), mark });

describe.skipIf(mongodbMissing)("two replicas of every process", () => {
  const workload = () => startSelling(clients(4, insist));

  /** The others do its work, and it gets its share again when it is back. */
  async function without(name: Which, signal: NodeJS.Signals, { more }: ReturnType<typeof workload>) {
    await petstore.kill(name, signal);
    await more(20);
    await petstore.start(name);
    const before = served(name);
    while (served(name) < before + 5) await more(1);
  }

  test("one at a time may go under load, and nobody notices but those whom it leaves without an answer", {
    timeout,
  }, async () => {
    const all = workload();
    await all.more(100);
    for (const name of instances) expect(served(name), name).toBeGreaterThan(10);

    for (const name of services) await without(name, "SIGTERM", all);
    expect(met).toEqual({ refused: 0, unanswered: 0, most: 0 });
    for (const name of gateways) await without(name, "SIGTERM", all);
    expect(met.refused).toBe(0);

    met = { refused: 0, unanswered: 0, most: 0 };
    for (const name of instances) await without(name, "SIGKILL", all);
    // Each gateway may find out for itself.
    expect(met.most).toBeLessThanOrEqual(gateways.length);

    await all.end();
    await all.check(petstore.http, () => readStores(petstore));
  });

  test("one key at both gateways makes one record", { timeout }, async () => {
    const pet = await makePet(1);
    await make({ do: "stock", id: pet, quantity: 50, mark: 2 });
    for (let round = 0; round < 10; round++) {
      const order: Operation = { do: "place order", pet, quantity: 2, mark: 3, key: `shared-${round}` };
      const outcomes = await Promise.all(Array.from({ length: 6 }, () => insist(order)));
      for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
      expect(outcomes[0]?.is).toBe("done");
    }
    expect((await readOverHttp(petstore.http, "inventory", pet))?.view.quantity).toBe(30);
  });

  test("what one gateway was answered, the other one shows", { timeout }, async () => {
    const pet = await makePet(10);
    const category = await make({ do: "create category", mark: 11 });
    for (let mark = 12; mark < 28; mark++) {
      const here = nextGateway();
      const there = otherThan(here);
      const read = async (kind: "category" | "inventory" | "order", id: number) =>
        (await readOverHttp(petstore.url(there), kind, id))?.view;
      await once({ do: "rename category", id: category, mark }, here);
      expect(await read("category", category)).toEqual({ name: `mark ${mark}` });
      await once({ do: "stock", id: pet, quantity: mark, mark }, here);
      const placed = await once({ do: "place order", pet, quantity: mark, mark }, here);
      expect(await read("inventory", pet)).toEqual({ quantity: 0, status: "pending" });
      const order = placed.is === "done" && placed.shown ? placed.shown.id : expect.fail(JSON.stringify(placed));
      await once({ do: "cancel order", id: order, mark }, here);
      expect([await read("order", order), (await read("inventory", pet))?.quantity]).toEqual([undefined, mark]);
    }
  });

  test("a pet's status is never older later, whoever is asked", { timeout }, async () => {
    const pet = await makePet(70);
    const statuses = ["available"];
    let over = false;
    const look = async () => {
      for (let ended = false; !ended; ) {
        ended = over;
        const status = String((await readOverHttp(petstore.http, "pet", pet))?.view.status);
        if (status !== statuses.at(-1)) statuses.push(status);
      }
    };
    const looking = look();
    const follow = (status: string) => eventually(async () => statuses.at(-1), status);
    for (let mark = 71; mark < 76; mark++) {
      const order = await make({ do: "place order", pet, quantity: 1, mark });
      await follow("pending");
      await make({ do: "complete order", id: order, mark });
      await follow("sold");
      await make({ do: "stock", id: pet, quantity: 1, mark });
      await follow("available");
    }
    over = true;
    await looking;
    const round = ["pending", "sold", "available"];
    expect(statuses).toEqual(["available", ...round, ...round, ...round, ...round, ...round]);
  });

  test("workers of both replicas finish what was left undone", { timeout }, async () => {
    const pets: number[] = [];
    for (let mark = 80; mark < 100; mark++) pets.push(await makePet(mark));
    // Nobody can be told the status now; each replica of the other side publishes what is pending.
    await petstore.kill("pet", "SIGKILL");
    for (const pet of pets) await make({ do: "stock", id: pet, quantity: 0, mark: pet });
    await petstore.start("pet");
    const statuses = async () => {
      const shown = await Promise.all(pets.map((pet) => readOverHttp(petstore.http, "pet", pet)));
      return shown.map((pet) => pet?.view.status);
    };
    await eventually(
      statuses,
      pets.map(() => "sold"),
    );
  });

  test("one that hangs is passed over until it answers again", { timeout }, async () => {
    const pet = await makePet(110);
    const read = async (gateway: Which, seconds: number) => {
      const headers = { "x-server-timeout": String(seconds) };
      return (await fetch(`${petstore.url(gateway)}/pets/${pet}`, { headers })).status;
    };
    const degraded = async (gateway: Which) =>
      ((await (await fetch(`${petstore.url(gateway)}/readyz`)).json()) as { degraded?: string[] }).degraded;
    await petstore.kill("pet-2", "SIGSTOP");
    for (const gateway of gateways) {
      // The first read that it gets finds it out and moves on.
      for (let i = 0; i < 20; i++) expect(await read(gateway, 10)).toBe(200);
      expect(await degraded(gateway)).toEqual(["pet-2"]);
    }
    await petstore.kill("pet-2", "SIGCONT");
    const before = served("pet-2");
    while (served("pet-2") < before + 20) expect(await read(nextGateway(), 10)).toBe(200);
    await eventually(() => degraded("gateway-1"), undefined);
  });
});
