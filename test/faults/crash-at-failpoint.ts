/** Processes that die at a named point: of what the test does there, and of nothing else. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceName } from "../../config.ts";
import { eventually } from "../harness/eventually.ts";
import type { Petstore } from "../harness/petstore.ts";
import { unfinishedIn } from "../harness/stores.ts";

/** Whose unfinished work passes points of a service: its own, and that of those who call it about theirs. */
const passing: Record<ServiceName, readonly ServiceName[]> = {
  category: ["category"],
  order: ["order"],
  pet: ["pet", "category"],
  inventory: ["inventory", "pet", "order"],
};

/**
 * Starts a service again so that it dies at the point. Before that, everybody finishes what is left over: a worker that
 * came to the point with another record would die in place of what the test is about to do.
 */
export async function arm(petstore: Petstore, service: ServiceName, point: string): Promise<void> {
  const others = passing[service].filter((name) => name !== service);
  let pauseMs = 0;
  const leftOver = async () => {
    for (const name of passing[service]) await petstore.kill(name, "SIGTERM");
    const found: string[] = [];
    for (const name of passing[service]) found.push(...(await unfinishedIn(petstore, name)));
    for (const name of others) await petstore.start(name);
    if (found.length > 0) {
      await petstore.start(service);
      // Workers come by every 2 s, and at a start the others may not be up yet: each look leaves them more time.
      pauseMs += 1_000;
      await sleep(pauseMs);
    }
    return found;
  };
  await eventually(leftOver, []);
  await petstore.start(service, { CRASH_AT: point });
}

/** The service dies at the point while it works, and comes back. */
export async function dying<T>(
  petstore: Petstore,
  service: ServiceName,
  point: string,
  work: () => Promise<T>,
): Promise<T> {
  await arm(petstore, service, point);
  try {
    const result = await work();
    await petstore.ended(service);
    return result;
  } finally {
    await petstore.kill(service);
    await petstore.start(service);
  }
}
