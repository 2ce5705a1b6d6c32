/**
 * Every metric of the petstore, declared once, and what records them. `docs/metrics.md` is made of the list. Where OpenTelemetry's
 * semantic conventions have a name it is used, as Prometheus writes it.
 */
import { Code } from "@connectrpc/connect";
import {
  counter,
  gauge,
  HTTP_REQUESTS,
  histogram,
  RPC_CALLS_MADE,
  RPC_CALLS_SERVED,
} from "@petstore/metrics/declaration";
import { NODE_METRICS } from "@petstore/metrics/node";
import { createRegistry } from "@petstore/metrics/registry";
import { type CallEnded, recordCalls } from "@petstore/rpc/call";
import { stopwatch } from "@petstore/runtime/clock";
import manifest from "../package.json" with { type: "json" };
import { reasonOf } from "./errors.ts";

const DB_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

const PETSTORE_METRICS = {
  requests: HTTP_REQUESTS,
  served: RPC_CALLS_SERVED,
  called: RPC_CALLS_MADE,
  operations: histogram(
    "db_client_operation_duration_seconds",
    "Calls of the store. Without an error type they were answered.",
    ["db_system_name", "db_namespace", "db_collection_name", "db_operation_name", "error_type"],
    DB_SECONDS,
  ),
  pending: gauge(
    "petstore_pending_records",
    "Records that wait for something to be finished; of inventory, statuses that Pet has still to be told.",
    ["kind", "state"],
  ),
  oldestPending: gauge(
    "petstore_oldest_pending_seconds",
    "How long the oldest of the pending records has waited at the same step, as far as this process has seen.",
    ["kind"],
  ),
  outboxLag: gauge(
    "petstore_outbox_lag_seconds",
    "How long the oldest status has waited to be told to Pet, as far as this process has seen.",
    [],
  ),
  unsettled: gauge(
    "petstore_unsettled_reservations",
    "Reservations of the last round that were old enough, and neither settled nor known to belong to an open order.",
    [],
  ),
  keys: gauge("petstore_idempotency_keys", "Idempotency keys that are stored.", ["kind"]),
  tombstones: gauge("petstore_tombstones", "What remains of deleted records.", ["kind"]),
  violations: gauge(
    "petstore_invariant_violations",
    "What breaks an invariant (docs/doctor.md) at two looks, at most 1,000 of each. Absent on MongoDB, and while nobody can look.",
    ["invariant"],
  ),
  workerFailures: counter("petstore_worker_failures_total", "Runs of a background worker that failed.", ["worker"]),
  corrupt: counter("petstore_corrupt_documents_total", "Times that a stored document could not be read.", [
    "collection",
  ]),
  limit: gauge(
    "petstore_admission_limit",
    "Calls that may be under way at once, as found by measuring: the limit of a process for calls to a service.",
    ["process", "service"],
  ),
  running: gauge("petstore_admission_running", "Calls that are under way.", ["process", "service"]),
  refused: counter("petstore_refused_total", "Requests and calls that were not let in.", ["reason"]),
  streams: gauge("petstore_streams", "Open streams.", ["process"]),
  deprecated: counter("petstore_deprecated_requests_total", "Requests for deprecated operations.", ["http_route"]),
  build: gauge("petstore_build_info", "1, with the version that runs.", ["version"]),
} as const;

export const METRICS = { ...PETSTORE_METRICS, ...NODE_METRICS } as const;

/** Not let in for lack of room or right. */
const REFUSALS: ReadonlySet<string | undefined> = new Set([
  ...["MISDIRECTED_REQUEST", "OVERLOADED", "PERMISSION_DENIED"],
  ...["RATE_LIMITED", "TOO_MANY_STREAMS", "UNAUTHENTICATED"],
]);

/** The codes of calls that were not let in: to look for the reason costs as much as a record. */
const REFUSING: ReadonlySet<Code> = new Set([
  ...[Code.PermissionDenied, Code.ResourceExhausted, Code.Unauthenticated, Code.Unavailable],
]);

export type Metrics = ReturnType<typeof createMetrics>;

/** `wallClock`: milliseconds since 1970. */
export function createMetrics(wallClock: () => number = Date.now) {
  const registry = createRegistry(wallClock);
  const { counter, histogram, read } = registry;
  read(METRICS.build, (tell) => tell(1, manifest.version));
  const refusals = counter(METRICS.refused);
  const countRefusal = (reason: string | undefined) => {
    if (REFUSALS.has(reason)) refusals.of(reason as string).add();
  };
  const recordServed = recordCalls(histogram(METRICS.served));
  return {
    ...registry,
    /** For durations, in milliseconds. */
    now: stopwatch,
    requests: histogram(METRICS.requests),
    deprecated: counter(METRICS.deprecated),
    operations: histogram(METRICS.operations),
    workerFailures: counter(METRICS.workerFailures),
    corrupt: counter(METRICS.corrupt),
    /** Counts a request that failed for this reason, if that means that it was not let in. */
    countRefusal,
    called: recordCalls(histogram(METRICS.called)),
    served: ((method, ms, failure, context) => {
      recordServed(method, ms, failure, context);
      if (failure && REFUSING.has(failure.code)) countRefusal(reasonOf(failure)?.reason);
    }) satisfies CallEnded as CallEnded,
  };
}
