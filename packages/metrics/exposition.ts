/**
 * The two text forms that Prometheus reads: its own (0.0.4), which every tool knows, and OpenMetrics (1.0), which has units and
 * exemplars as well.
 */
import { type Declaration, unitOf } from "./declaration.ts";
import type { CounterSeries, HistogramSeries, Labelled, Read } from "./registry.ts";

export type Form = "openmetrics" | "plain";

export const CONTENT_TYPE: Readonly<Record<Form, string>> = {
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
  plain: "text/plain; version=0.0.4; charset=utf-8",
};

/** The form that an `Accept` prefers. Other versions of OpenMetrics are as if they were not named. */
export function formFor(accept = ""): Form {
  let openmetrics = 0;
  let plain = 0;
  for (const range of accept.toLowerCase().split(",")) {
    const [type, ...rest] = range.split(";").map((part) => part.trim());
    const parameters = new Map(rest.map((part) => part.split("=", 2) as [string, string]));
    const quality = Number(parameters.get("q") ?? 1);
    const version = parameters.get("version") ?? "1.0.0";
    if (type === "application/openmetrics-text" && version === "1.0.0") openmetrics = Math.max(openmetrics, quality);
    if (type === "text/plain") plain = Math.max(plain, quality);
  }
  return openmetrics > 0 && openmetrics >= plain ? "openmetrics" : "plain";
}

/** All that is known under one declaration. */
export interface Family {
  readonly declaration: Declaration;
  readonly counters: Labelled<CounterSeries>[];
  readonly histograms: Labelled<HistogramSeries>[];
  readonly reads: Read<readonly string[]>[];
}

export function exposition(families: readonly Family[], form: Form): string {
  const lines = families.flatMap((family) => [...head(family.declaration, form), ...samples(family, form)]);
  return `${[...lines, ...(form === "openmetrics" ? ["# EOF"] : [])].join("\n")}\n`;
}

function head(declaration: Declaration, form: Form): string[] {
  const { kind, name, help } = declaration;
  // In OpenMetrics `_total` belongs to the sample, not to the name of the counter.
  const family = form === "openmetrics" ? name.replace(/_total$/, "") : name;
  const unit = form === "openmetrics" && unitOf(declaration);
  return [`# HELP ${family} ${help}`, `# TYPE ${family} ${kind}`, ...(unit ? [`# UNIT ${family} ${unit}`] : [])];
}

function* samples({ declaration, counters, histograms, reads }: Family, form: Form): Generator<string> {
  const { name, labels, bounds } = declaration;
  const sums = new Map<string, number>();
  const tell = (value: number, ...values: readonly string[]) => {
    const key = labelText(labels, values);
    sums.set(key, (sums.get(key) ?? 0) + value);
  };
  for (const { values, series } of counters) tell(series.value(), ...values);
  for (const read of reads) read(tell);
  for (const [text, value] of sums) yield `${name}${text && `{${text}}`} ${numberText(value)}`;

  for (const { values, series } of histograms) {
    const text = labelText(labels, values);
    let count = 0;
    for (const [bucket, bound] of [...bounds, Number.POSITIVE_INFINITY].entries()) {
      count += series.inBucket(bucket);
      const exemplar = form === "openmetrics" ? exemplarText(series.exemplar(bucket)) : "";
      yield `${name}_bucket{${text && `${text},`}le="${boundText(bound)}"} ${count}${exemplar}`;
    }
    yield `${name}_sum${text && `{${text}}`} ${numberText(series.sum())}`;
    yield `${name}_count${text && `{${text}}`} ${count}`;
  }
}

const labelText = (names: readonly string[], values: readonly string[]): string =>
  names.flatMap((name, i) => (values[i] ? `${name}="${escaped(values[i])}"` : [])).join(",");

const escaped = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');

const numberText = (value: number): string =>
  Number.isFinite(value) ? `${value}` : Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";

/** Alike in both forms, because it is a label: another text would be another series. "Canonical Numbers" in OpenMetrics. */
const boundText = (bound: number): string => (Number.isInteger(bound) ? bound.toFixed(1) : numberText(bound));

function exemplarText(exemplar: ReturnType<HistogramSeries["exemplar"]>): string {
  if (!exemplar) return "";
  const { trace, value, time } = exemplar;
  return ` # {trace_id="${trace.traceId}",span_id="${trace.spanId}"} ${value} ${time / 1000}`;
}
