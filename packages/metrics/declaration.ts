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

// Durations of requests and calls, by the names and with the bounds that OpenTelemetry's semantic conventions recommend.
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

export const CALL_LABELS = ["rpc_system_name", "rpc_method", "rpc_status_code"] as const;

export const HTTP_REQUESTS = histogram(
  "http_server_request_duration_seconds",
  "Requests to the gateway, until their answer was over. Status 499: the caller left before it began.",
  ["http_request_method", "http_route", "http_response_status_code"],
  SECONDS,
);

export const RPC_CALLS_SERVED = histogram(
  "rpc_server_call_duration_seconds",
  "Calls that a service was asked for, streams until their end. Without a status code they succeeded.",
  CALL_LABELS,
  SECONDS,
);

export const RPC_CALLS_MADE = histogram(
  "rpc_client_call_duration_seconds",
  "Calls to a service with all their attempts, streams until their end. Without a status code they succeeded.",
  CALL_LABELS,
  SECONDS,
);
