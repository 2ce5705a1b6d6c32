/** Processes that die at a named point: of what the test does there, and of nothing else. */
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
 * Lets a service die at the point. Before that, everybody finishes what is left over: a worker that came to the point with
 * another record would die in place of what the test is about to do.
 */
export async function arm(petstore: Petstore, service: ServiceName, point: string): Promise<void> {
  if (!petstore.isRunning(service)) await petstore.start(service);
  const leftOver = async () => (await Promise.all(passing[service].map((name) => unfinishedIn(petstore, name)))).flat();
  await eventually(leftOver, []);
  await petstore.arm(service, point);
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
