/** A petstore in which nothing goes wrong, one operation after the other, against the rules of the store. */
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createModel } from "../checker/model.ts";
import { createClient } from "../workload/client.ts";
import { type Operation, prelude, programs } from "../workload/operations.ts";
import { type Outcome, perform, type Shown } from "../workload/perform.ts";
import { listAll } from "../workload/reading.ts";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { createCluster } from "./cluster.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const LENGTH = 25;
const ended: Record<string, number> = {};

async function compare(program: readonly Operation[]): Promise<void> {
  const cluster = await createCluster();
  const model = createModel();
  let shown = new Map<string, Shown>();
  const versionOf = (kind: string, id: number) => shown.get(`${kind} ${id}`)?.version;

  async function check(operation: Operation): Promise<Outcome> {
    const outcome = await cluster.until(perform(cluster, operation));
    const end = outcome.is === "refused" ? outcome.reason : outcome.is;
    ended[end] = (ended[end] ?? 0) + 1;
    expect([operation, end]).toEqual([operation, model.expect(operation, outcome, versionOf)]);
    await cluster.settle();
    const before = shown;
    shown = new Map((await cluster.until(listAll(cluster))).map((record) => [`${record.kind} ${record.id}`, record]));
    expect(new Map([...shown].map(([name, { view }]) => [name, view]))).toEqual(model.views());
    for (const [name, { version, view }] of shown) {
      const earlier = before.get(name);
      // The entity tag changes if and only if the representation does.
      if (earlier) expect([name, version !== earlier.version]).toEqual([name, !isDeepStrictEqual(view, earlier.view)]);
    }
    return outcome;
  }
  const client = createClient(check);
  for (const operation of [...prelude, ...program]) await client.do(operation);
}

test(`every answer and all that is shown follow the rules (HISTORY_SEED=${historySeed} HISTORY_RUNS=${historyRuns})`, async () => {
  const program = programs(1, LENGTH).map(([only = []]) => only);
  await fc.assert(fc.asyncProperty(program, compare), { numRuns: historyRuns, seed: historySeed });
  // A run that never met a rule proves nothing about it.
  expect(Object.keys(ended).sort()).toEqual(
    [
      ...["done", "ETAG_MISMATCH", "IDEMPOTENCY_KEY_REUSED"],
      ...["CATEGORY_NOT_FOUND", "PET_NOT_FOUND", "ORDER_NOT_FOUND", "INVENTORY_NOT_FOUND"],
      ...["CATEGORY_IN_USE", "PET_HAS_OPEN_ORDERS", "ORDER_COMPLETE", "INSUFFICIENT_STOCK", "PET_NOT_AVAILABLE"],
    ].sort(),
  );
}, 900_000);
