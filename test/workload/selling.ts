/** Clients that sell one pet after the other, and check what they were told. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { wrongInTheEnd } from "../checker/invariants.ts";
import { emptyState, type State } from "../checker/state.ts";
import { eventually } from "../harness/eventually.ts";
import { BETWEEN_LOOKS_MS } from "../harness/stores.ts";
import { createClient } from "./client.ts";
import { readOverHttp } from "./http.ts";
import type { Operation } from "./operations.ts";
import type { Outcome, Shown } from "./perform.ts";

/** How many of the newest acknowledged records are read. */
const RECENT = 200;

/** Sends an operation until its outcome is known. */
export type Insist = (operation: Operation) => Promise<Outcome>;

export interface SellingOptions {
  /** How many records are read after each write. None may be older than acknowledged. */
  readonly reads?: number;
  /**
   * Whether every other create has no key now, for clients that don't send twice. Otherwise every operation may be repeated.
   */
  readonly withoutKeys?: () => boolean;
}

/** `count` clients that send in the same way. */
export const clients = (count: number, insist: Insist): readonly Insist[] =>
  Array.from({ length: count }, () => insist);

/** Runs several clients until `end`; each performs one operation at a time. */
export function startSelling(ways: readonly Insist[], { reads = 0, withoutKeys = () => false }: SellingOptions = {}) {
  /** The last acknowledged state of every record. Each record has one client that writes to it. */
  const acknowledged = new Map<string, Shown>();
  const newest: Shown[] = [];
  let writes = 0;
  let over = false;

  async function read(insist: Insist): Promise<void> {
    const { kind, id, version } = newest[Math.floor(Math.random() * newest.length)] as Shown;
    const outcome = await insist({ do: `see ${kind}`, id, how: "alone", mark: 0 });
    const seen = outcome.is === "done" ? outcome.shown?.version : undefined;
    if (seen === undefined || seen < version)
      throw new Error(`${kind} ${id} was acknowledged at version ${version}, and read: ${JSON.stringify(outcome)}`);
  }

  async function write(operation: Operation, insist: Insist): Promise<Outcome> {
    const outcome = await insist(operation);
    if (outcome.is !== "done" || !outcome.shown) throw new Error(`${operation.do}: ${JSON.stringify(outcome)}`);
    acknowledged.set(`${outcome.shown.kind} ${outcome.shown.id}`, outcome.shown);
    if (newest.push(outcome.shown) > RECENT) newest.shift();
    writes++;
    return outcome;
  }

  async function work(insist: Insist, number: number): Promise<void> {
    for (let round = 0; !over; round++) {
      const client = createClient((operation) => write(operation, insist));
      const mark = 1 + round * ways.length + number;
      const key = round % 2 === 1 && withoutKeys() ? undefined : `key-${mark}`;
      const steps: Operation[] = [
        { do: "create category", mark, key },
        { do: "create pet", category: 0, mark, key },
        { do: "change pet", id: 0, mark: mark + 1 },
        { do: "place order", pet: 0, quantity: 1, mark, key },
        { do: "complete order", id: 0, mark },
        { do: "stock", id: 0, quantity: 3, mark },
        { do: "date order", id: 0, mark: mark + 1 },
      ];
      for (const step of steps) {
        await client.do(step);
        for (let left = reads; left > 0; left--) await read(insist);
      }
    }
  }
  const working = Promise.all(ways.map(work));
  working.catch(() => {});

  return {
    /** Resolves when `count` more writes were acknowledged. Rejects when a client gets a wrong answer. */
    async more(count: number): Promise<void> {
      const enough = writes + count;
      const counted = async () => {
        while (writes < enough) await sleep(10);
      };
      await Promise.race([counted(), working]);
    },
    /** Waits until all clients have finished their present sale. */
    async end(): Promise<void> {
      over = true;
      await working;
    },
    /** Checks that everything acknowledged is there, as the gateway shows it. */
    async checkShown(gateway: string): Promise<void> {
      const read = async () => {
        const found: [string, unknown][] = [];
        for (const { kind, id } of acknowledged.values())
          found.push([`${kind} ${id}`, (await readOverHttp(gateway, kind, id))?.view]);
        return found;
      };
      // A pet's status follows its inventory entry, where there is stock again.
      const expected = [...acknowledged].map(([name, { kind, view }]): [string, unknown] => [
        name,
        kind === "pet" ? { ...view, status: "available" } : view,
      ]);
      await eventually(read, expected);
    },
    /** Checks that everything acknowledged exists, once, and that the stored state is consistent in the end. */
    async check(gateway: string, stored: () => Promise<State>): Promise<void> {
      await this.checkShown(gateway);
      let state = emptyState();
      const wrong = async () => {
        state = await stored();
        return wrongInTheEnd(state);
      };
      // What follows from the last answers is done by workers.
      await eventually(wrong, [], BETWEEN_LOOKS_MS);
      // Every create was acknowledged in the end, so no other records exist.
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
