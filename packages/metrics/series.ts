/** What is recorded under one combination of labels. Recording writes into typed arrays and allocates nothing. */

/** The trace that a value belongs to, if that is recorded: so it can be looked up, and becomes an exemplar. */
export interface Trace {
  readonly traceId: string;
  readonly spanId: string;
}

export interface CounterSeries {
  add(count?: number): void;
  value(): number;
}

export function counterSeries(): CounterSeries {
  const count = new Float64Array(1); // a plain variable would be a new number on the heap with each addition
  return {
    add(more = 1) {
      (count[0] as number) += more;
    },
    value: () => count[0] as number,
  };
}

export interface HistogramSeries {
  record(value: number, trace?: Trace): void;
  /** How many values are in the bucket alone, without those of smaller ones. */
  inBucket(bucket: number): number;
  /** The last value of a bucket with a trace, if there is any. */
  exemplar(bucket: number): Exemplar | undefined;
  sum(): number;
}

export interface Exemplar {
  readonly traceId: string;
  readonly spanId: string;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly time: number;
}

export function histogramSeries(bounds: readonly number[], clock: () => number): HistogramSeries {
  const last = bounds.length;
  const upper = Float64Array.from(bounds);
  const counts = new Float64Array(last + 1);
  const total = new Float64Array(1);
  const traces: (Trace | undefined)[] = Array.from({ length: last + 1 }, () => undefined);
  const values = new Float64Array(last + 1);
  const times = new Float64Array(last + 1);
  return {
    record(value, trace) {
      let bucket = 0;
      while (bucket < last && value > (upper[bucket] as number)) bucket++;
      (counts[bucket] as number)++;
      (total[0] as number) += value;
      if (trace === undefined) return;
      traces[bucket] = trace;
      values[bucket] = value;
      times[bucket] = clock();
    },
    inBucket: (bucket) => counts[bucket] as number,
    exemplar(bucket) {
      const trace = traces[bucket];
      if (!trace) return undefined;
      const { traceId, spanId } = trace;
      return { traceId, spanId, value: values[bucket] as number, time: times[bucket] as number };
    },
    sum: () => total[0] as number,
  };
}
