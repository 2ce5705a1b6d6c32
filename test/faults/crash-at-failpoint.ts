/** Processes that die at a named point: of what the test does there, and of nothing else. */
import type { ServiceName } from "../../config.ts";
import { eventually } from "../harness/eventually.ts";
import type { Petstore } from "../harness/petstore.ts";
import { unfinishedIn } from "../harness/stores.ts";
import { createClient } from "../workload/client.ts";
import { performOverHttp } from "../workload/http.ts";
import type { Operation } from "../workload/operations.ts";

/** Whose unfinished work passes points of a service: its own, and that of those who call it about theirs. */
const passing: Record<ServiceName, readonly ServiceName[]> = {
  category: ["category"],
  order: ["order"],
  pet: ["pet", "category"],
  inventory: ["inventory", "pet", "order"],
};

/** What is left over that would lead a service to its points. */
const leftOver = async (petstore: Petstore, service: ServiceName) =>
  (await Promise.all(passing[service].map((name) => unfinishedIn(petstore, name)))).flat();

/**
 * Lets a service die at the point. Before that, everybody finishes what is left over: a worker that came to the point with
 * another record would die in place of what the test is about to do.
 */
async function arm(petstore: Petstore, service: ServiceName, point: string): Promise<void> {
  if (!petstore.isRunning(service)) await petstore.start(service);
  await eventually(() => leftOver(petstore, service), []);
  await petstore.arm(service, point);
}

/** Whether the service has died at the point, which what is left over may still lead it to. */
async function hasDied(petstore: Petstore, service: ServiceName, point: string): Promise<boolean> {
  let isAlive = true;
  await eventually(async () => {
    const before = await leftOver(petstore, service);
    // Armed once more it answers, or is no longer there; that a process has ended is heard late.
    isAlive = await petstore.arm(service, point);
    return isAlive ? before : [];
  }, []);
  return !isAlive;
}

/** What a piece of work was answered. "unknown": maybe nothing was done, as when the service could not be reached. */
interface Answer {
  readonly is: "done" | "refused" | "unknown";
}
const ATTEMPTS = 3;

/**
 * The service dies at the point while it works, and is not started again. Work of which nobody knows how it ended is done
 * again when nothing has died of it; anything else fails, and the service does not die any more.
 */
export async function dyingAt<T extends Answer>(
  petstore: Petstore,
  service: ServiceName,
  point: string,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    await arm(petstore, service, point);
    const answer = await work();
    if (await hasDied(petstore, service, point)) return answer;
    await petstore.arm(service, "");
    if (answer.is !== "unknown" || attempt === ATTEMPTS)
      throw new Error(`${service} did not come to ${point}: the answer was ${JSON.stringify(answer)}`);
    await reachable(petstore);
  }
}

/** The service dies at the point while it works, and comes back. */
export async function dying<T extends Answer>(...[petstore, service, ...how]: Parameters<typeof dyingAt<T>>) {
  try {
    return await dyingAt(petstore, service, ...how);
  } finally {
    await petstore.kill(service);
    await petstore.start(service);
    await reachable(petstore);
  }
}

/** What takes every way from one service to another, and leaves nothing. */
const everyWay: readonly Operation[] = [
  { do: "create category", mark: 1 },
  { do: "create pet", category: 0, mark: 2 },
  { do: "place order", pet: 0, quantity: 1, mark: 3 },
  { do: "cancel order", id: 0, mark: 4 },
  { do: "delete pet", id: 0, mark: 5 },
  { do: "delete category", id: 0, mark: 6 },
];

/**
 * Resolves when all services reach one another. One that is ready may not be called yet by another that found it silent
 * before it was started again.
 */
async function reachable(petstore: Petstore): Promise<void> {
  const client = createClient((operation) => performOverHttp(petstore.http, operation));
  for (const operation of everyWay)
    await eventually(async () => (await client.once(operation)).is === "unknown", false);
}
