/** The runs of `npm run simulate`: each has a history of its own, drawn from the seed and the number of the run. */

import { seededRandom } from "@petstore/runtime/clock";
import fc from "fast-check";
import { earlyQuestions } from "./histories/early-questions.ts";
import type { History, HistoryKind, Witness } from "./histories/history.ts";
import { lastHours } from "./histories/last-hours.ts";
import { manyDays } from "./histories/many-days.ts";
import { meeting } from "./histories/meeting.ts";
import { oneDay } from "./histories/one-day.ts";

const kinds = {
  meeting,
  "one day": oneDay,
  "early questions": earlyQuestions,
  "last hours": lastHours,
  "many days": manyDays,
} satisfies Record<string, HistoryKind>;
export interface Run {
  readonly kind: keyof typeof kinds;
  readonly history: History;
}

/** Most histories are short, for races are found by the number of attempts. */
function kindAt(share: number): Run["kind"] {
  if (share < 0.4) return "meeting";
  if (share < 0.6) return "one day";
  if (share < 0.8) return "early questions";
  return share < 0.96 ? "last hours" : "many days";
}

export function draw(seed: number, run: number): Run {
  // Neighbours in both numbers get seeds far apart.
  const ownSeed = (Math.imul(seed, 0x9e3779b1) + Math.imul(run, 0x85ebca6b)) | 0;
  const kind = kindAt(seededRandom(ownSeed)());
  const [history] = fc.sample(kinds[kind].arbitrary, { seed: ownSeed, numRuns: 1, unbiased: true });
  if (!history) throw new Error(`No history was drawn for run ${run} of seed ${seed}.`);
  return { kind, history };
}

/** Resolves to what was wrong, in sentences. What is thrown is wrong as well. */
export async function play({ kind, history }: Run, witness: Witness = () => {}): Promise<readonly string[]> {
  try {
    return await kinds[kind].run(history, witness);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
