import { spread } from "../compare/results.ts";

/** Percentiles: the values below which 0 to 100 percent lie. */
export type Quantiles = readonly number[];

const SHARES = Array.from({ length: 101 }, (_, i) => i / 100);

export function quantiles(values: readonly number[]): Quantiles {
  const sorted = Float64Array.from(values).sort();
  return SHARES.map((share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

/** The median of the rounds, for each percentile by itself. */
export const medianOf = (rounds: readonly Quantiles[]): Quantiles =>
  SHARES.map((_, i) => spread(rounds.map((one) => one[i] ?? 0)).median);
