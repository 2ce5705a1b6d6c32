/**
 * kill -9 of each process in turn and of all five at once, while clients write: whatever was acknowledged is there
 * afterwards, as it was acknowledged, and nothing is left unfinished.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, test } from "vitest";
import { type ProcessName, processNames } from "#shared/config.ts";
import { type Petstore, startPetstore } from "./petstore.ts";
import { createClient } from "./simulation/client.ts";
import { eventually } from "./simulation/eventually.ts";
import { performOverHttp, readOverHttp } from "./simulation/http.ts";
import type { Operation } from "./simulation/operations.ts";
import type { Outcome, Shown } from "./simulation/perform.ts";
import { wrongInTheStores } from "./simulation/stores.ts";

const CLIENTS = 4;
/** Writes that are acknowledged before a kill, and again after it. */
const WRITES = 40;

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore?.stop());

/** The last acknowledged state of every record. No two clients write to the same one. */
const acknowledged = new Map<string, Shown>();
let writes = 0;
let interrupted = 0;
let over = false;

/** Sends until it is known how it ended. Every write here may be repeated: it has a key, or says what is to be. */
async function insist(operation: Operation): Promise<Outcome> {
  for (;;) {
    // While the gateway is down nobody answers at all.
    const outcome = await performOverHttp(petstore.http, operation).catch((): Outcome => ({ is: "unknown" }));
    if (outcome.is !== "unknown") return outcome;
    interrupted++;
    await sleep(20);
  }
}

async function write(operation: Operation): Promise<Outcome> {
  const outcome = await insist(operation);
  if (outcome.is !== "done" || !outcome.shown) throw new Error(`${operation.do}: ${JSON.stringify(outcome)}`);
  acknowledged.set(`${outcome.shown.kind} ${outcome.shown.id}`, outcome.shown);
  writes++;
  return outcome;
}

/** Sells one pet after the other. */
async function work(number: number): Promise<void> {
  for (let round = 0; !over; round++) {
    const client = createClient(write);
    const mark = 1 + round * CLIENTS + number;
    const key = `key-${mark}`;
    const steps: Operation[] = [
      { do: "create category", mark, key },
      { do: "create pet", category: 0, mark, key },
      { do: "change pet", id: 0, mark: mark + 1 },
      { do: "place order", pet: 0, quantity: 1, mark, key },
      { do: "complete order", id: 0, mark },
      { do: "stock", id: 0, quantity: 3, mark },
      { do: "date order", id: 0, mark: mark + 1 },
    ];
    for (const step of steps) await client.do(step);
  }
}

async function moreWrites(): Promise<void> {
  const enough = writes + WRITES;
  while (writes < enough) await sleep(10);
}

const rounds: (readonly ProcessName[])[] = [...processNames.map((name) => [name]), processNames];

test("every acknowledged write outlives kill -9 of any process and of all", async () => {
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => work(number)));
  for (const names of rounds) {
    await Promise.race([moreWrites(), clients]);
    const before = interrupted;
    await Promise.all(names.map((name) => petstore.kill(name)));
    // A kill that nobody noticed would prove nothing.
    while (interrupted === before) await sleep(10);
    await Promise.all(names.map((name) => petstore.start(name)));
    await Promise.race([moreWrites(), clients]);
  }
  over = true;
  await clients;

  const read = async () => {
    const found: [string, unknown][] = [];
    for (const { kind, id } of acknowledged.values())
      found.push([`${kind} ${id}`, (await readOverHttp(petstore.http, kind, id))?.view]);
    return found;
  };
  // A pet follows its inventory entry, where there is stock again.
  const expected = [...acknowledged].map(([name, { kind, view }]): [string, unknown] => [
    name,
    kind === "pet" ? { ...view, status: "available" } : view,
  ]);
  await eventually(read, expected);
  await eventually(() => wrongInTheStores(petstore), []);
}, 300_000);
