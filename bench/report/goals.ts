/** The petstore's performance goals, and whether a run reaches them. Ratios are to the monolith of the same run. */
import { type Cell, type Measure, type Results, ratio, type Spread, spread } from "../compare/results.ts";

/** The peer that the others are compared with. */
export const BASE = "monolith";

/** By peer. */
type Limits = Readonly<Record<string, number>>;
interface Goal {
  readonly title: string;
  readonly atLeast?: Limits;
  readonly atMost?: Limits;
}
interface RatioGoal extends Goal, Cell {
  readonly measure: Measure;
}

export interface Verdict {
  readonly title: string;
  /** In words, such as "at least 4x". */
  readonly goal: string;
  /** In words, such as "3.9x (3.5 to 4.2)". */
  readonly reached: string;
  readonly isReached: boolean;
}

const limits = (oneProcess: number, five: number): Limits => ({ "petstore-one-process": oneProcess, petstore: five });

const rate = { title: "rate", measure: "rate" } as const;
const cpu = { title: "CPU", measure: "cpu" } as const;
const p50 = { title: "p50", measure: "p50" } as const;
const ratios: readonly RatioGoal[] = [
  { workload: "get", connections: 50, ...rate, atLeast: limits(3, 2.2) },
  { workload: "get", connections: 50, ...cpu, atMost: limits(0.4, 0.55) },
  { workload: "get", connections: 16, ...rate, atLeast: limits(2, 1.2) },
  { workload: "get", connections: 1, ...p50, atMost: limits(1.3, 2.2) },
  { workload: "list", connections: 50, ...rate, atLeast: limits(5, 4.5) },
  { workload: "list-filters", connections: 50, ...rate, atLeast: limits(1.1, 0.9) },
  { workload: "mixed", connections: 50, ...rate, atLeast: limits(1.5, 1.1) },
  { workload: "mixed", connections: 50, ...cpu, atMost: limits(0.75, 1.3) },
];
const START: Goal = { title: "start to first answer", atMost: limits(0.6, 1.5) };
const MEMORY: Goal = { title: "resident memory at rest", atMost: limits(120, 450) };

/** The verdicts on the goals of a peer that this run has measured. */
export function verdicts(results: Results, peer: string): Verdict[] {
  const compared = ratios.flatMap((goal) => {
    const value = ratio(results, { ...goal, of: peer, to: BASE });
    const title = `${goal.workload}, ${connectionsOf(goal)}: ${goal.title}`;
    return value ? verdict({ ...goal, title }, peer, value, 2, "x") : [];
  });
  const starts = results.starts.filter((start) => start.peer === peer);
  if (starts.length === 0) return compared;
  const seconds = spread(starts.map(({ readyMs }) => readyMs / 1000));
  const mib = spread(starts.map(({ restingBytes }) => restingBytes / 2 ** 20));
  return [...compared, ...verdict(START, peer, seconds, 2, " s"), ...verdict(MEMORY, peer, mib, 0, " MiB")];
}

export const connectionsOf = ({ connections }: Cell): string =>
  `${connections} ${connections === 1 ? "connection" : "connections"}`;

/** None where the peer has no such goal. */
function verdict(
  { title, atLeast, atMost }: Goal,
  peer: string,
  { median, min, max }: Spread,
  digits: number,
  unit: string,
): Verdict[] {
  const limit = (atLeast ?? atMost)?.[peer];
  if (limit === undefined) return [];
  const text = (value: number) => value.toFixed(digits);
  return [
    {
      title,
      goal: `${atLeast ? "at least" : "at most"} ${limit}${unit}`,
      reached: `${text(median)}${unit} (${text(min)} to ${text(max)})`,
      isReached: atLeast ? median >= limit : median <= limit,
    },
  ];
}
