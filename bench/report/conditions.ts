/** Conditions that a reader has to know before trusting the numbers: other load on the machine, and failed requests. */
import { counts, type Sample, spread } from "../compare/results.ts";

export const count = (value: number): string => Math.round(value).toLocaleString("en");

export function conditions(samples: readonly Sample[]): string[] {
  const others = spread(samples.map(({ cost }) => cost.othersShare * 100));
  return [
    `**What else ran on the machine** while it was measured: ${others.median.toFixed(0)} % of its processor time ` +
      `(${others.min.toFixed(0)} to ${others.max.toFixed(0)} %) went to processes that have nothing to do with it.`,
    "",
    ...samples.filter((sample) => !counts(sample) || hasFailures(sample)).map((sample) => `${failures(sample)}\n`),
  ];
}

const hasFailures = ({ answered }: Sample): boolean => answered.refused + answered.broken > 0;

function failures(sample: Sample): string {
  const { peer, workload, connections, round, answered } = sample;
  return (
    `Of ${count(answered.requests)} requests of ${workload} at ${connections} connections to ${peer} in round ${round}, ` +
    `${answered.refused} were answered with an error and ${answered.broken} not at all` +
    `${counts(sample) ? "." : ": the measurement does not count."}`
  );
}
