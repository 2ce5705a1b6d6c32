/** What is known of a metric before anything is recorded: exposition, documentation and dashboards are made of this. */

export interface Declaration<K extends Kind = Kind, L extends readonly string[] = readonly string[]> {
  readonly kind: K;
  /** As Prometheus names it: with the unit, and with `_total` if it is a counter. */
  readonly name: string;
  /** One line, without quotes and backslashes. */
  readonly help: string;
  /** The names of its labels, at most `MAX_LABELS`. Their values must come from a closed set, never from a caller. */
  readonly labels: L;
  /** Of a histogram: the upper bounds of its buckets, ascending, without the last, which is infinite. */
  readonly bounds: readonly number[];
}
export type Kind = "counter" | "gauge" | "histogram";

export const MAX_LABELS = 5;

const declaring =
  <K extends Kind>(kind: K) =>
  <const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
    bounds: readonly number[] = [],
  ): Declaration<K, L> => ({ kind, name, help, labels, bounds });

export const counter = declaring("counter");
export const gauge = declaring("gauge");
/** Its last argument is the bounds. */
export const histogram = declaring("histogram");

/** The unit in a metric's name; empty if it has none. */
export const unitOf = ({ name }: Pick<Declaration, "name">): string =>
  /_(seconds|bytes)(?:_total)?$/.exec(name)?.[1] ?? "";
