/** All that a process counts and measures, by its declarations. */
import { type Declaration, MAX_LABELS } from "./declaration.ts";
import { exposition, type Family, type Form } from "./exposition.ts";
import { type CounterSeries, counterSeries, type HistogramSeries, histogramSeries } from "./series.ts";

export type { Trace } from "./series.ts";

/** A value for each label, in the order of their names. An empty one counts as absent. */
type Values<L extends readonly string[]> = { readonly [N in keyof L]: string };

/** Finds what is recorded under these labels, and allocates nothing if there is anything yet. */
type Of<L extends readonly string[], S> = (...values: Values<L>) => S;

export interface Counter<L extends readonly string[] = readonly string[]> {
  readonly of: Of<L, Pick<CounterSeries, "add">>;
}
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
    counter<L extends readonly string[]>(declaration: Declaration<"counter", L>): Counter<L> {
      const { counters } = familyOf(declaration);
      return { of: byLabels(counters, declaration, counterSeries) };
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
    /** All of it as text. */
    text: (form: Form): string => exposition([...families.values()], form),
  };
}

/** What is recorded under one combination of labels. */
export interface Labelled<S> {
  readonly values: readonly string[];
  readonly series: S;
}

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
