/** What an operation does when nothing goes wrong: the steps that it takes and what it leaves. */

import { createWitness, type Witness } from "../checker/online-checker.ts";
import { createWorld, type World } from "../simulation/cluster.ts";
import { calm } from "../simulation/fault-injector.ts";
import { type Client, createClient, leftBehind } from "./client.ts";
import { type Outcome, perform } from "./perform.ts";
import type { Scenario } from "./scenarios.ts";

export interface Recording {
  readonly outcome: Outcome;
  /** "service step", in the order in which they were taken. */
  readonly steps: readonly string[];
  /** The named points among the steps, each once, as [service, point]. */
  readonly points: readonly (readonly [string, string])[];
  /** What it left, in the end. */
  readonly left: Awaited<ReturnType<typeof leftBehind>>;
}

export interface Stage {
  readonly world: World;
  readonly witness: Witness;
  readonly client: Client;
}

/** A world in which all that comes before the operation has been done. */
export async function prepare({ before }: Scenario): Promise<Stage> {
  const witness = createWitness();
  const world = await createWorld(witness.written);
  const client = createClient((operation) => witness.follow(operation, () => perform(world, operation)));
  for (const operation of before) await world.until(client.do(operation));
  await world.settle();
  return { world, witness, client };
}

export async function record(scenario: Scenario): Promise<Recording> {
  const { world, witness, client } = await prepare(scenario);
  const steps: string[] = [];
  const dies = (service: string, label: string) => {
    steps.push(`${service} ${label}`);
    return false;
  };
  world.setChaos({ ...calm, dies });
  const outcome = await world.until(client.once(scenario.act));
  await world.untilIdle();
  await world.settle();
  const left = await leftBehind(client.known, async (kind, id) => witness.shown(kind, id));
  const points = steps.flatMap((step) => {
    const [service = "", kind, point = ""] = step.split(" ");
    return kind === "point" ? [`${service} ${point}`] : [];
  });
  return { outcome, steps, left, points: [...new Set(points)].map((point) => point.split(" ") as [string, string]) };
}
