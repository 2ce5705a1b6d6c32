/** The results of a comparison: `results/latest.json`. Tables and charts are made from this file alone. */
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
  /** The peers that are missing, with the reasons. */
  readonly leftOut: readonly string[];
  readonly starts: readonly Start[];
  readonly samples: readonly Sample[];
}

export interface Settings {
  readonly pets: number;
  readonly rounds: number;
  /** Duration of one measurement. */
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

/** The measures of a sample: requests per second, milliseconds, and microseconds of processor time per request. */
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

/** The median of several rounds, and their range. */
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

/** The pairs of workload and connections, in the order in which they were first measured. */
export function cellsOf({ samples }: Pick<Results, "samples">): Cell[] {
  const cells = new Map(
    samples.map(({ workload, connections }) => [`${workload} ${connections}`, { workload, connections }]),
  );
  return [...cells.values()];
}

/**
 * Maximum share of failed requests. With more, or without any answer, a sample does not count: an error costs less than the
 * right answer.
 */
const MAX_FAILURES = 0.01;
export const counts = ({ answered: { requests, refused, broken } }: Sample): boolean =>
  requests > 0 && refused + broken <= requests * MAX_FAILURES;

/** The samples of all rounds, without those that don't count. */
export const samplesOf = ({ samples }: Pick<Results, "samples">, peer: string, { workload, connections }: Cell) =>
  samples.filter(
    (sample) =>
      counts(sample) && sample.peer === peer && sample.workload === workload && sample.connections === connections,
  );

/** The ratio to the other peer, round by round: both ran during the same minutes. */
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
