/** Counts what random histories came to. A run in which some fault never struck proves nothing about it. */
import { type Fault, faultKinds } from "./fault-injector.ts";
import type { Witness } from "./histories/history.ts";
import { type Situation, situations } from "./histories/situations.ts";

export interface Coverage {
  readonly operations: Record<string, number>;
  /** "done", "unknown", or the reason of a refusal. */
  readonly outcomes: Record<string, number>;
  readonly faults: Partial<Record<Fault, number>>;
  readonly situations: Partial<Record<Situation, number>>;
}
export const noCoverage = (): Coverage => ({ operations: {}, outcomes: {}, faults: {}, situations: {} });

export function createCoverage() {
  const coverage = noCoverage();
  const witness: Witness = (event) => {
    switch (event.is) {
      case "struck":
        return add(coverage.faults, event.fault);
      case "happened":
        return add(coverage.situations, event.what);
      case "answered": {
        const { operation, outcome } = event;
        add(coverage.operations, operation.do);
        return add(coverage.outcomes, outcome.is === "refused" ? outcome.reason : outcome.is);
      }
    }
  };
  return { coverage, witness };
}

const add = (counts: Record<string, number>, what: string, more = 1): void => {
  counts[what] = (counts[what] ?? 0) + more;
};

/** Adds the counts of `more` to `all`. */
export function addCoverage(all: Coverage, more: Coverage): void {
  for (const [part, counts] of Object.entries(more) as [keyof Coverage, Record<string, number>][])
    for (const [what, count] of Object.entries(counts)) add(all[part] as Record<string, number>, what, count);
}

/** What never happened and has to, sooner or later. */
export const uncovered = ({ faults, outcomes, situations: seen }: Coverage): string[] => [
  ...faultKinds.filter((fault) => !faults[fault]),
  ...["done", "unknown"].filter((outcome) => !outcomes[outcome]),
  ...situations.filter((situation) => !seen[situation]),
];
