/** Clients that keep a petstore busy, each doing one thing after the other, until they are told to stop. */
import { setTimeout as sleep } from "node:timers/promises";
import type { History } from "../checker/failover-history.ts";
import type { Operation } from "./operations.ts";
import type { Outcome } from "./perform.ts";

/** Between two things that a client does. */
const PAUSE_MS = 20;
/** Pets whose stock is bought and filled up by many at once. */
const SHELVES = 4;
/** What goes on for so long after all blows goes on for ever. Generous, for the machine may be busy with other tests. */
const PATIENCE_MS = 60_000;
/** One set of clients; with several, they meet at the same records. */
const SETS = 2;

const marks = { next: 1 };
const mark = () => marks.next++;
const pick = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)] as T;
const chance = (part: number) => Math.random() < part;

export interface Load {
  /** Ends when every client has come to rest. Rejects when one can't, for it is refused again and again. */
  stop(): Promise<void>;
}

/** Starts the clients, and resolves when there is something to work on. */
export async function startLoad(history: History): Promise<Load> {
  const stop = new AbortController();
  const { perform, get, list } = history;

  /** What can be repeated is repeated until it is known how it ended. The answer to a create stays the same. */
  async function insist(operation: Operation): Promise<Exclude<Outcome, { is: "unknown" }>> {
    for (;;) {
      const outcome = await perform(operation);
      const passes = outcome.is === "refused" && /CONCURRENT_UPDATE|IN_PROGRESS/.test(outcome.reason);
      if (outcome.is !== "unknown" && !passes) return outcome as Exclude<Outcome, { is: "unknown" }>;
      await sleep(PAUSE_MS);
    }
  }

  async function create(operation: Operation): Promise<number | undefined> {
    const key = `key-${operation.mark}`;
    const outcome = await insist({ ...operation, key });
    if (outcome.is === "done" && chance(0.2)) await insist({ ...operation, key });
    return outcome.is === "done" ? outcome.shown?.id : undefined;
  }

  const must = async (operation: Operation): Promise<number> => {
    const id = await create(operation);
    if (id === undefined) throw new Error(`${operation.do} was refused`);
    return id;
  };
  const category = await must({ do: "create category", mark: mark() });
  const shelves: number[] = [];
  while (shelves.length < SHELVES) shelves.push(await must({ do: "create pet", category, mark: mark() }));
  for (const id of shelves) await insist({ do: "stock", id, quantity: 100, mark: mark() });

  async function buy(): Promise<void> {
    const pet = pick(shelves);
    const complete = chance(0.2);
    const quantity = 1 + Math.floor(Math.random() * 2);
    const id = await create({ do: "place order", pet, quantity, complete, mark: mark() });
    if (id === undefined) return;
    await get("order", id);
    if (complete || chance(0.3)) return;
    const end = chance(0.5) ? "complete order" : "cancel order";
    await insist({ do: end, id, mark: mark() });
    await get("order", id);
    await get("inventory", pet);
  }

  /** Several fill up the same shelf, on the condition that it is still as they saw it. */
  async function fill(): Promise<void> {
    const id = pick(shelves);
    const seen = await get("inventory", id);
    if (!seen) return;
    const quantity = Number(seen.view.quantity) + (chance(0.5) ? 3 : -1);
    await perform({ do: "stock", id, quantity: Math.max(0, quantity), match: seen.version, mark: mark() });
    await get("inventory", id);
  }

  async function raise(): Promise<void> {
    const id = await must({ do: "create pet", category, mark: mark() });
    for (let i = 0; i < 3; i++) {
      const seen = await get("pet", id);
      if (!seen) continue;
      const outcome = await perform({ do: "change pet", id, match: seen.version, mark: mark() });
      if (outcome.is === "refused") history.violations.push(`the only one who changes pet ${id}: ${outcome.reason}`);
    }
    if (chance(0.5)) await insist({ do: "delete pet", id, mark: mark() });
    await get("pet", id);
  }

  /** A category is deleted while a pet joins it: one of the two is refused, or the pet comes to be and the category stays. */
  async function join(): Promise<void> {
    const id = await must({ do: "create category", mark: mark() });
    const pet = create({ do: "create pet", category: id, mark: mark() });
    await insist({ do: "delete category", id, mark: mark() });
    await pet;
    await get("category", id);
  }

  async function look(): Promise<void> {
    await list(pick(["category", "pet", "order", "inventory"] as const));
    const known = [...history.told.values()].slice(-200);
    const { kind, id } = pick(known);
    await get(kind, id);
  }

  const run = async (work: () => Promise<void>) => {
    while (!stop.signal.aborted) {
      await work();
      await sleep(PAUSE_MS);
    }
  };
  const clients = Array.from({ length: SETS }, () => [buy, buy, fill, raise, join, look].map(run)).flat();
  const all = Promise.all(clients);
  all.catch(() => {});
  return {
    async stop() {
      stop.abort();
      const { promise, reject } = Promise.withResolvers<never>();
      const late = setTimeout(() => {
        const last = history.attempts
          .slice(-20)
          .map(({ operation, over }) => JSON.stringify({ ...operation, ...over }));
        reject(new Error(`A refusal lasts. What was asked last:\n${last.join("\n")}`));
      }, PATIENCE_MS);
      await Promise.race([all, promise]);
      clearTimeout(late);
    },
  };
}
