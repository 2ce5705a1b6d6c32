/** What a comparison writes down: `results/latest.json`. Tables and charts are made from it alone. */
import type { Answered } from "../load/generator.ts";
import type { Cost } from "../measure/window.ts";

export interface Results {
  /** ISO 8601 */
  readonly at: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGib: number;
    readonly kernel: string;
    readonly node: string;
    readonly mongod: string;
    readonly generator: string;
  };
  readonly settings: Settings;
  readonly peers: readonly { readonly name: string; readonly title: string }[];
  /** Why others are missing. */
  readonly leftOut: readonly string[];
  readonly starts: readonly Start[];
  readonly samples: readonly Sample[];
}

export interface Settings {
  readonly pets: number;
  readonly rounds: number;
  /** Of one measurement. */
  readonly seconds: number;
  readonly seed: number;
}

export interface Start {
  readonly round: number;
  readonly peer: string;
  readonly readyMs: number;
  readonly restingBytes: number;
}

export interface Sample {
  readonly round: number;
  readonly peer: string;
  readonly workload: string;
  readonly connections: number;
  readonly answered: Answered;
  readonly cost: Cost;
}

/** What is measured of a request, in one unit each: per second, milliseconds, microseconds. */
export const measures = {
  rate: ({ answered }: Sample) => answered.requests / answered.seconds,
  p50: ({ answered }: Sample) => answered.p50,
  p99: ({ answered }: Sample) => answered.p99,
  cpu: ({ answered, cost }: Sample) => cost.servers / answered.requests,
  wholeCpu: ({ answered, cost }: Sample) => (cost.servers + cost.mongod) / answered.requests,
  mongodCpu: ({ answered, cost }: Sample) => cost.mongod / answered.requests,
  generatorCpu: ({ answered, cost }: Sample) => cost.generator / answered.requests,
} as const;
export type Measure = keyof typeof measures;

/** The middle of several rounds, and how far they lie apart. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const half = sorted.length >> 1;
  const median = sorted.length % 2 === 0 ? (at(half - 1) + at(half)) / 2 : at(half);
  return { median, min: at(0), max: at(sorted.length - 1) };
}

export interface Cell {
  readonly workload: string;
  readonly connections: number;
}

/** Workloads with their connections, in the order in which they were measured first. */
export function cellsOf({ samples }: Pick<Results, "samples">): Cell[] {
  const cells = new Map(
    samples.map(({ workload, connections }) => [`${workload} ${connections}`, { workload, connections }]),
  );
  return [...cells.values()];
}

/** More failures, or no answer, make a measurement worthless: an error is cheaper than what was asked for. */
const MAX_FAILURES = 0.01;
export const counts = ({ answered: { requests, refused, broken } }: Sample): boolean =>
  requests > 0 && refused + broken <= requests * MAX_FAILURES;

/** One for each round, but for those that don't count. */
export const samplesOf = ({ samples }: Pick<Results, "samples">, peer: string, { workload, connections }: Cell) =>
  samples.filter(
    (sample) =>
      counts(sample) && sample.peer === peer && sample.workload === workload && sample.connections === connections,
  );

/** How many times as much as the other peer, round by round: both had the same minutes of the machine. */
export function ratio(
  results: Pick<Results, "samples">,
  { of, to, measure, ...cell }: Cell & { readonly of: string; readonly to: string; readonly measure: Measure },
): Spread | undefined {
  const others = new Map(samplesOf(results, to, cell).map((sample) => [sample.round, measures[measure](sample)]));
  const ratios = samplesOf(results, of, cell).flatMap((sample) => {
    const other = others.get(sample.round);
    return other === undefined ? [] : [measures[measure](sample) / other];
  });
  return ratios.length === 0 ? undefined : spread(ratios);
}
