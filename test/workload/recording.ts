/** Records what an operation does without faults: its steps and the state that it leaves. */

import { createOnlineChecker, type OnlineChecker } from "../checker/online-checker.ts";
import { type Cluster, createCluster } from "../simulation/cluster.ts";
import { noFaults } from "../simulation/fault-injector.ts";
import { type Client, createClient, leftBehind } from "./client.ts";
import { type Outcome, perform } from "./perform.ts";
import type { Scenario } from "./scenarios.ts";

export interface Recording {
  readonly outcome: Outcome;
  /** "service step", in order. */
  readonly steps: readonly string[];
  /** The failpoints among the steps, each once, as [service, failpoint]. */
  readonly points: readonly (readonly [string, string])[];
  /** The final state of the records. */
  readonly left: Awaited<ReturnType<typeof leftBehind>>;
}

export interface Stage {
  readonly cluster: Cluster;
  readonly checker: OnlineChecker;
  readonly client: Client;
}

/** A cluster in which all operations before this one have been done. */
export async function prepare({ before }: Scenario): Promise<Stage> {
  const checker = createOnlineChecker();
  const cluster = await createCluster(checker.written);
  const client = createClient((operation) => checker.follow(operation, () => perform(cluster, operation)));
  for (const operation of before) await cluster.until(client.do(operation));
  await cluster.settle();
  return { cluster, checker, client };
}

export async function record(scenario: Scenario): Promise<Recording> {
  const { cluster, checker, client } = await prepare(scenario);
  const steps: string[] = [];
  const dies = (service: string, label: string) => {
    steps.push(`${service} ${label}`);
    return false;
  };
  cluster.injectFaults({ ...noFaults, dies });
  const outcome = await cluster.until(client.once(scenario.act));
  await cluster.untilIdle();
  await cluster.settle();
  const left = await leftBehind(client.known, async (kind, id) => checker.shown(kind, id));
  const points = steps.flatMap((step) => {
    const [service = "", kind, point = ""] = step.split(" ");
    return kind === "point" ? [`${service} ${point}`] : [];
  });
  return { outcome, steps, left, points: [...new Set(points)].map((point) => point.split(" ") as [string, string]) };
}
