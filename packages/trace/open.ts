/** The one place that loads OpenTelemetry, where traces are on. */
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import type { Tracing } from "./tracing.ts";

export interface TracingConfig {
  /** Who makes the spans: the name of their instrumentation scope. */
  readonly scope: string;
  /** Whether a caller decides that its trace is recorded, if it may. */
  readonly followsCallers: boolean;
  /** The part of the traces that begin here that are recorded, from 0 to 1. */
  readonly ratio: number;
  /** What describes the process, by the names of the semantic conventions. */
  readonly resource: Readonly<Record<string, string>>;
  /** How spans are collected before they are sent. */
  readonly batches: {
    readonly scheduledDelayMillis: number;
    readonly exportTimeoutMillis: number;
    readonly maxQueueSize: number;
    readonly maxExportBatchSize: number;
  };
}

export type TracingDeps = Pick<Runtime, "clock" | "random" | "sleep" | "log"> & WallTime;

/** Undefined where traces are off. The receiver is the one that OTEL_EXPORTER_OTLP_ENDPOINT and its siblings name. */
export async function openTracing(config: TracingConfig | undefined, deps: TracingDeps): Promise<Tracing | undefined> {
  if (!config) return undefined;
  const { createTracing } = await import("./sdk.ts");
  return createTracing(config, deps);
}
