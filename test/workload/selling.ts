/** Clients that sell one pet after the other, and what they were told. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { wrongInTheEnd } from "../checker/invariants.ts";
import { eventually } from "../harness/eventually.ts";
import type { Petstore } from "../harness/petstore.ts";
import { readStores } from "../harness/stores.ts";
import { createClient } from "./client.ts";
import { readOverHttp } from "./http.ts";
import type { Operation } from "./operations.ts";
import type { Outcome, Shown } from "./perform.ts";

const CLIENTS = 4;

/**
 * Lets several clients work until `end`. `insist` sends an operation until it is known how it ended: every one may be
 * repeated, for it has a key, or says what is to be.
 */
export function startSelling(insist: (operation: Operation) => Promise<Outcome>) {
  /** The last acknowledged state of every record. No two clients write to the same one. */
  const acknowledged = new Map<string, Shown>();
  let writes = 0;
  let over = false;

  async function write(operation: Operation): Promise<Outcome> {
    const outcome = await insist(operation);
    if (outcome.is !== "done" || !outcome.shown) throw new Error(`${operation.do}: ${JSON.stringify(outcome)}`);
    acknowledged.set(`${outcome.shown.kind} ${outcome.shown.id}`, outcome.shown);
    writes++;
    return outcome;
  }

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
  const working = Promise.all(Array.from({ length: CLIENTS }, (_, number) => work(number)));
  working.catch(() => {});

  return {
    /** Resolves when so many more writes were acknowledged; rejects when a client was told what it should not be. */
    async more(count: number): Promise<void> {
      const enough = writes + count;
      const counted = async () => {
        while (writes < enough) await sleep(10);
      };
      await Promise.race([counted(), working]);
    },
    /** Lets everybody finish what they sell. */
    async end(): Promise<void> {
      over = true;
      await working;
    },
    /** Everything that was acknowledged is there, once, and what is stored adds up. */
    async check(petstore: Petstore): Promise<void> {
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
      const state = await readStores(petstore);
      expect(wrongInTheEnd(state)).toEqual([]);
      // Every create was acknowledged in the end, so there are no other records.
      for (const [kind, docs] of [
        ["category", state.categories],
        ["pet", state.pets],
        ["order", state.orders],
      ] as const) {
        const known = [...acknowledged.values()].filter((shown) => shown.kind === kind).map(({ id }) => id);
        const listed = [...docs.values()].filter((doc) => doc.visible).map(({ _id }) => _id);
        expect(listed).toEqual(known.sort((a, b) => a - b));
      }
    },
  };
}
