/**
 * kill -9 of each process in turn and of all five at once, while clients write: whatever was acknowledged is there
 * afterwards, as it was acknowledged, and nothing is left unfinished.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, test } from "vitest";
import { type ProcessName, processNames } from "../../processes/names.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { readStores } from "../harness/stores.ts";
import { performOverHttp } from "../workload/http.ts";
import type { Operation } from "../workload/operations.ts";
import type { Outcome } from "../workload/perform.ts";
import { clients, startSelling } from "../workload/selling.ts";

/** Writes that are acknowledged before a kill, and again after it. */
const WRITES = 40;

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore?.stop());

let interrupted = 0;

async function insist(operation: Operation): Promise<Outcome> {
  for (;;) {
    // While the gateway is down nobody answers at all.
    const outcome = await performOverHttp(petstore.http, operation).catch((): Outcome => ({ is: "unknown" }));
    if (outcome.is !== "unknown") return outcome;
    interrupted++;
    await sleep(20);
  }
}

const rounds: (readonly ProcessName[])[] = [...processNames.map((name) => [name]), processNames];

test("every acknowledged write outlives kill -9 of any process and of all", async () => {
  const workload = startSelling(clients(4, insist));
  for (const names of rounds) {
    await workload.more(WRITES);
    const before = interrupted;
    await Promise.all(names.map((name) => petstore.kill(name)));
    // A kill that nobody noticed would prove nothing.
    while (interrupted === before) await sleep(10);
    await Promise.all(names.map((name) => petstore.start(name)));
    await workload.more(WRITES);
  }
  await workload.end();
  await workload.check(petstore.http, () => readStores(petstore));
}, 300_000);
