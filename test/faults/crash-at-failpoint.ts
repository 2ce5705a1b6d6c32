/** Makes processes die at a named failpoint, during a given piece of work and at no other time. */
import type { ServiceName } from "../../processes/names.ts";
import { eventually } from "../harness/eventually.ts";
import type { Petstore } from "../harness/petstore.ts";
import { unfinishedIn } from "../harness/stores.ts";
import { createClient } from "../workload/client.ts";
import { performOverHttp } from "../workload/http.ts";
import type { Operation } from "../workload/operations.ts";

/** The services whose unfinished work reaches failpoints of a service: its own work, and that of services that call it. */
const passing: Record<ServiceName, readonly ServiceName[]> = {
  category: ["category"],
  order: ["order"],
  pet: ["pet", "category"],
  inventory: ["inventory", "pet", "order"],
};

/** Unfinished work that would take a service to its failpoints. */
const leftOver = async (petstore: Petstore, service: ServiceName) =>
  (await Promise.all(passing[service].map((name) => unfinishedIn(petstore, name)))).flat();

/**
 * Arms the failpoint of a service. First waits until unfinished work is done: otherwise a worker that reaches the failpoint
 * with another record would die before the test's own work.
 */
async function arm(petstore: Petstore, service: ServiceName, point: string): Promise<void> {
  if (!petstore.isRunning(service)) await petstore.start(service);
  await eventually(() => leftOver(petstore, service), []);
  await petstore.arm(service, point);
}

/** Whether the service has died at the failpoint, which unfinished work may still reach. */
async function hasDied(petstore: Petstore, service: ServiceName, point: string): Promise<boolean> {
  let isAlive = true;
  await eventually(async () => {
    const before = await leftOver(petstore, service);
    // Arms again only to learn whether the process is gone, because its end is reported late.
    isAlive = await petstore.arm(service, point);
    return isAlive ? before : [];
  }, []);
  return !isAlive;
}

/** The outcome of a piece of work. "unknown": it may have had no effect, as when the service could not be reached. */
interface Answer {
  readonly is: "done" | "refused" | "unknown";
}
const ATTEMPTS = 3;

/**
 * Lets the service die at the failpoint during `work`, and does not restart it. If the work ends with an unknown outcome and
 * the service lives, the work is repeated; any other outcome without a death fails, and the failpoint is disarmed.
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

/** Lets the service die at the failpoint during `work`, and restarts it. */
export async function dying<T extends Answer>(...[petstore, service, ...how]: Parameters<typeof dyingAt<T>>) {
  try {
    return await dyingAt(petstore, service, ...how);
  } finally {
    await petstore.kill(service);
    await petstore.start(service);
    await reachable(petstore);
  }
}

/** Operations that use every connection between services, and leave no records. */
const everyWay: readonly Operation[] = [
  { do: "create category", mark: 1 },
  { do: "create pet", category: 0, mark: 2 },
  { do: "place order", pet: 0, quantity: 1, mark: 3 },
  { do: "cancel order", id: 0, mark: 4 },
  { do: "delete pet", id: 0, mark: 5 },
  { do: "delete category", id: 0, mark: 6 },
];

/**
 * Resolves when all services reach one another. A service that is ready may still be avoided by another one that could not
 * reach it before its restart.
 */
async function reachable(petstore: Petstore): Promise<void> {
  const client = createClient((operation) => performOverHttp(petstore.http, operation));
  for (const operation of everyWay)
    await eventually(async () => (await client.once(operation)).is === "unknown", false);
}
