/** All that a process counts and measures, by its declarations. Recording writes into typed arrays and allocates nothing. */
import { type Declaration, MAX_LABELS } from "./declaration.ts";
import { exposition, type Family, type Form } from "./exposition.ts";

/** A value for each label, in the order of their names. An empty one counts as absent. */
type Values<L extends readonly string[]> = { readonly [N in keyof L]: string };

/** Finds what is recorded under these labels, and allocates nothing if there is anything yet. */
type Of<L extends readonly string[], S> = (...values: Values<L>) => S;

export interface Histogram<L extends readonly string[] = readonly string[]> {
  readonly of: Of<L, Pick<HistogramSeries, "record">>;
}

/** Tells the current values of a metric. What is told of the same labels more than once is added up. */
export type Read<L extends readonly string[]> = (tell: (value: number, ...values: Values<L>) => void) => void;

export type Registry = ReturnType<typeof createRegistry>;

/** `clock`: milliseconds since 1970, for exemplars. */
export function createRegistry(clock: () => number) {
  const families = new Map<Declaration, Family>();

  function familyOf(declaration: Declaration): Family {
    const known = families.get(declaration);
    if (known) return known;
    if ([...families.keys()].some(({ name }) => name === declaration.name))
      throw new TypeError(`${declaration.name} is declared twice.`);
    const family: Family = { declaration, counters: [], histograms: [], reads: [] };
    families.set(declaration, family);
    return family;
  }

  return {
    /** The same metric for the same declaration, however often it is asked for. */
    counter<L extends readonly string[]>(declaration: Declaration<"counter", L>) {
      return { of: byLabels<L, CounterSeries>(familyOf(declaration).counters, declaration, counterSeries) };
    },
    histogram<L extends readonly string[]>(declaration: Declaration<"histogram", L>): Histogram<L> {
      const { histograms } = familyOf(declaration);
      return { of: byLabels(histograms, declaration, () => histogramSeries(declaration.bounds, clock)) };
    },
    /** Has the values read when they are asked for. Returns what ends that. */
    read<L extends readonly string[]>(declaration: Declaration<"counter" | "gauge", L>, read: Read<L>): () => void {
      const { reads } = familyOf(declaration);
      reads.push(read as Read<readonly string[]>);
      return () => void reads.splice(reads.indexOf(read as Read<readonly string[]>), 1);
    },
    text: (form: Form): string => exposition([...families.values()], form),
  };
}

/** What is recorded under one combination of labels. */
export type Labelled<S> = { readonly values: readonly string[]; readonly series: S };

type Level<T> = Map<string, T>;

/** Nested maps and no keys put together of several values, for that would make a new string with each record. */
function byLabels<L extends readonly string[], S>(all: Labelled<S>[], { labels, name }: Declaration, make: () => S) {
  if (labels.length > MAX_LABELS) throw new TypeError(`${name} has more than ${MAX_LABELS} labels.`);
  const root: Level<Level<Level<Level<Level<S>>>>> = new Map();
  const below = <T>(level: Level<Level<T>>, value: string): Level<T> => {
    const next = level.get(value) ?? new Map();
    level.set(value, next);
    return next;
  };
  function add(...[a, b, c, d, e]: [string, string, string, string, string]): S {
    const values = [a, b, c, d, e].slice(0, labels.length);
    const known = all.find((one) => one.values.every((value, i) => value === values[i]));
    const series = known?.series ?? make();
    if (!known) all.push({ values, series });
    below(below(below(below(root, a), b), c), d).set(e, series);
    return series;
  }
  return ((a = "", b = "", c = "", d = "", e = "") =>
    root.get(a)?.get(b)?.get(c)?.get(d)?.get(e) ?? add(a, b, c, d, e)) as Of<L, S>;
}

/** The trace that a value belongs to, if that is recorded: so it can be looked up, and becomes an exemplar. */
type Trace = { readonly traceId: string; readonly spanId: string };

export type CounterSeries = ReturnType<typeof counterSeries>;

function counterSeries() {
  const count = new Float64Array(1); // a plain variable would be a new number on the heap with each addition
  return {
    add(more = 1): void {
      (count[0] as number) += more;
    },
    value: () => count[0] as number,
  };
}

export type HistogramSeries = ReturnType<typeof histogramSeries>;

function histogramSeries(bounds: readonly number[], clock: () => number) {
  const last = bounds.length;
  const upper = Float64Array.from(bounds);
  const counts = new Float64Array(last + 1);
  const total = new Float64Array(1);
  const traces: (Trace | undefined)[] = Array.from({ length: last + 1 }, () => undefined);
  const values = new Float64Array(last + 1);
  const times = new Float64Array(last + 1);
  return {
    record(value: number, trace?: Trace): void {
      let bucket = 0;
      while (bucket < last && value > (upper[bucket] as number)) bucket++;
      (counts[bucket] as number)++;
      (total[0] as number) += value;
      if (trace === undefined) return;
      traces[bucket] = trace;
      values[bucket] = value;
      times[bucket] = clock();
    },
    /** How many values are in the bucket alone, without those of smaller ones. */
    inBucket: (bucket: number) => counts[bucket] as number,
    /** The last value of a bucket with a trace, and when it was recorded, if there is any. */
    exemplar(bucket: number) {
      const trace = traces[bucket];
      return trace && { trace, value: values[bucket] as number, time: times[bucket] as number };
    },
    sum: () => total[0] as number,
  };
}
