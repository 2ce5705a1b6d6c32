/** Clients that keep a petstore busy until they are stopped. Each performs one operation at a time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { History } from "../checker/failover-history.ts";
import type { Operation } from "./operations.ts";
import type { Outcome } from "./perform.ts";

/** The pause between two actions of a client, in milliseconds. */
const PAUSE_MS = 20;
/** Pets whose stock many clients buy and fill up at once. */
const SHELVES = 4;
/**
 * A refusal that lasts longer than this after the last fault is taken to last for ever. Generous, since the machine may be
 * busy with other tests.
 */
const PATIENCE_MS = 60_000;
/** The number of sets of clients; several sets work on the same records. */
const SETS = 2;

const marks = { next: 1 };
const mark = () => marks.next++;
const pick = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)] as T;
const chance = (part: number) => Math.random() < part;

export interface Load {
  /** Resolves when every client has finished. Rejects if one can't finish because it is refused again and again. */
  stop(): Promise<void>;
}

/** Starts the clients. Resolves when there are records to work on. */
export async function startLoad(history: History): Promise<Load> {
  const stop = new AbortController();
  const { perform, get, list } = history;

  /** Repeats an operation until its outcome is known. A create with a key always gets the same answer. */
  async function insist(operation: Operation): Promise<Exclude<Outcome, { is: "unknown" }>> {
    for (;;) {
      const outcome = await perform(operation);
      const passes = outcome.is === "refused" && outcome.reason === "CONCURRENT_UPDATE";
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

  /** Several clients change the same stock, on condition that it has not changed since they read it. */
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

  /** Deletes a category while a pet joins it: either one is refused, or the pet is created and the category stays. */
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
