/** The petstore's performance goals, and whether a run reaches them. Ratios are to a peer of the same run. */
import { type Cell, type Measure, type Results, ratio, type Spread, spread } from "../compare/results.ts";

interface Goal {
  readonly title: string;
  readonly atLeast?: number;
  readonly atMost?: number;
}
interface RatioGoal extends Goal, Cell {
  readonly measure: Measure;
  readonly to: string;
}

export interface Verdict {
  readonly title: string;
  /** In words, such as "at least 4x". */
  readonly goal: string;
  /** In words, such as "3.9x (3.5 to 4.2)". */
  readonly reached: string;
  readonly isReached: boolean;
}

const rate = { measure: "rate" } as const;
const cpu = { measure: "cpu" } as const;
const ratios: readonly RatioGoal[] = [
  { title: "get, 50 connections: rate", workload: "get", connections: 50, ...rate, to: "monolith", atLeast: 4 },
  { title: "get, 50 connections: CPU", workload: "get", connections: 50, ...cpu, to: "monolith", atMost: 0.3 },
  { title: "get, 50 connections: rate", workload: "get", connections: 50, ...rate, to: "go", atLeast: 3.5 },
  { title: "get, 16 connections: rate", workload: "get", connections: 16, ...rate, to: "monolith", atLeast: 2.2 },
  { title: "get, 16 connections: rate", workload: "get", connections: 16, ...rate, to: "go", atLeast: 2 },
  { title: "get, 1 connection: p50", workload: "get", connections: 1, measure: "p50", to: "monolith", atMost: 1.5 },
  { title: "get, 1 connection: p50", workload: "get", connections: 1, measure: "p50", to: "go", atMost: 1 },
  { title: "list, 50 connections: rate", workload: "list", connections: 50, ...rate, to: "monolith", atLeast: 6 },
  { title: "list, 50 connections: rate", workload: "list", connections: 50, ...rate, to: "go", atLeast: 5 },
  {
    title: "list-filters, 50 connections: rate",
    workload: "list-filters",
    connections: 50,
    ...rate,
    to: "monolith",
    atLeast: 0.8,
  },
  {
    title: "list-filters, 50 connections: rate",
    workload: "list-filters",
    connections: 50,
    ...rate,
    to: "go",
    atLeast: 0.7,
  },
  { title: "mixed, 50 connections: rate", workload: "mixed", connections: 50, ...rate, to: "monolith", atLeast: 2 },
  { title: "mixed, 50 connections: CPU", workload: "mixed", connections: 50, ...cpu, to: "monolith", atMost: 0.6 },
  { title: "mixed, 50 connections: rate", workload: "mixed", connections: 50, ...rate, to: "go", atLeast: 2.7 },
  { title: "hot, 64 connections: rate", workload: "hot", connections: 64, ...rate, to: "monolith", atLeast: 5 },
  { title: "hot, 64 connections: rate", workload: "hot", connections: 64, ...rate, to: "go", atLeast: 5 },
];

/** The verdicts on the goals that this run has measured. */
export function verdicts(results: Results, of: string): Verdict[] {
  const compared = ratios.flatMap((goal) => {
    const value = ratio(results, { ...goal, of });
    return value ? [verdict({ ...goal, title: `${goal.title} against ${goal.to}` }, value, 2, "x")] : [];
  });
  const starts = results.starts.filter(({ peer }) => peer === of);
  if (starts.length === 0) return compared;
  const seconds = spread(starts.map(({ readyMs }) => readyMs / 1000));
  const mib = spread(starts.map(({ restingBytes }) => restingBytes / 2 ** 20));
  return [
    ...compared,
    verdict({ title: "start to first answer, all five", atMost: 2 }, seconds, 1, " s"),
    verdict({ title: "resident memory at rest, all five", atMost: 450 }, mib, 0, " MiB"),
  ];
}

function verdict(
  { title, atLeast, atMost }: Goal,
  { median, min, max }: Spread,
  digits: number,
  unit: string,
): Verdict {
  const [words, limit] = atLeast === undefined ? ["at most", atMost ?? Number.NaN] : ["at least", atLeast];
  const text = (value: number) => value.toFixed(digits);
  return {
    title,
    goal: `${words} ${limit}${unit}`,
    reached: `${text(median)}${unit} (${text(min)} to ${text(max)})`,
    isReached: atLeast === undefined ? median <= limit : median >= limit,
  };
}
