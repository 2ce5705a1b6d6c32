/**
 * Checks a history by what clients were told and by what is stored in the end. With real processes, nothing sees every write
 * at the moment it is made.
 */

import type { Stored } from "../simulation/disk.ts";
import type { Operation } from "../workload/operations.ts";
import type { Outcome, Shown } from "../workload/perform.ts";
import { createExistence } from "./existence.ts";
import { wrongInTheEnd } from "./invariants.ts";
import { createObservations, markIn } from "./observations.ts";
import { type CollectionName, type State, shownBy, shownIn } from "./state.ts";
import { type Attempt, markBy, recordsOf, violationsIn } from "./violations.ts";

export function createBlackBoxChecker() {
  const violations: string[] = [];
  const attempts: Attempt[] = [];
  const report = (violation: string) => void violations.push(violation);
  const { marked, show } = createObservations(report);
  const exists = createExistence(report, attempts);
  const heardOf = new Set<string>();
  let time = 0;

  /** Every existing pet has an inventory entry. */
  function hear(shown: Shown): void {
    heardOf.add(`${shown.kind} ${shown.id}`);
    if (shown.kind === "pet") heardOf.add(`inventory ${shown.id}`);
    show(shown);
  }

  return {
    /** Records one attempt of an operation and its outcome. */
    async follow(operation: Operation, sending: () => Promise<Outcome>): Promise<Outcome> {
      const about = recordsOf(operation).filter(([kind, id]) => heardOf.has(`${kind} ${id}`));
      const attempt: Attempt = { operation, sent: time++, about };
      attempts.push(attempt);
      const outcome = await sending();
      attempt.over = { at: time++, outcome };
      const shown = outcome.is === "done" ? outcome.shown : undefined;
      if (shown) hear(shown);
      const mark = markBy(operation);
      if (shown && mark && markIn(shown) !== mark)
        report(`${operation.do} (${mark}) was answered with ${markIn(shown)}`);
      exists(attempt);
      return outcome;
    },

    /** The violations, when everything has settled. `stored`: all states that are known to have been stored before. */
    verdict(state: State, stored: readonly Shown[]): readonly string[] {
      const last = (Object.entries(state) as [CollectionName, Map<number, Stored>][]).flatMap(([collection, docs]) =>
        [...docs.values()].flatMap((doc) => shownBy(collection, doc) ?? []),
      );
      for (const shown of [...stored, ...last]) show(shown);
      return [
        ...violations,
        ...violationsIn(attempts, marked, state, (kind, id) => shownIn(state, kind, id) !== undefined),
        ...wrongInTheEnd(state),
      ];
    },
  };
}
