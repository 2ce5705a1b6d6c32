/** The port for spans. Where traces are off there is no `Tracing`, so whatever would make a span tests for undefined. */
import type { Runtime, WallTime } from "@petstore/runtime/clock";
import type { TraceContext } from "./context.ts";

export type Kind = "server" | "client" | "internal";

export type Attributes = Readonly<Record<string, string | number>>;

/** A trace that is to be recorded: one that a caller is part of, or with its id alone one that begins here. */
export type Origin = Partial<TraceContext> & Pick<TraceContext, "traceId">;

/** Who sent a traceparent. A stranger may say which trace it is, but not that it is recorded. */
export type Sender = "own process" | "trusted proxy" | "stranger";

/** A piece of work that is under way. */
export interface Span {
  readonly context: TraceContext;
  set(attributes: Attributes): void;
  /** Another trace that this work is done for. */
  link(to: TraceContext): void;
  /** The work failed. `type` is one of few: a status, a code, or a class of errors. */
  fail(type: string): void;
  end(): void;
}

export interface Tracing {
  /**
   * The trace that a request belongs to by its headers, or one that it begins, which is called `begun`. Undefined for one that
   * is not recorded: then nothing is known of it further on. What the system's own processes ask for without a traceparent is
   * no part of a trace.
   */
  accept(header: (name: string) => string | null | undefined, sender: Sender, begun?: string): Origin | undefined;
  /** Begins a span, of a new trace if there is no origin. */
  start(
    name: string,
    kind: Kind,
    origin: Origin | undefined,
    attributes?: Attributes,
    links?: readonly TraceContext[],
  ): Span;
  /** Sends what was recorded, as far as the receiver takes it in time. */
  close(): Promise<void>;
}

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
  readonly batches: Readonly<
    Record<"scheduledDelayMillis" | "exportTimeoutMillis" | "maxQueueSize" | "maxExportBatchSize", number>
  >;
}

export type TracingDeps = Pick<Runtime, "clock" | "random" | "sleep" | "log"> & WallTime;

/**
 * Undefined where traces are off. Else loads OpenTelemetry, as nothing else does. The receiver is the one that
 * OTEL_EXPORTER_OTLP_ENDPOINT and its siblings name.
 */
export async function openTracing(config: TracingConfig | undefined, deps: TracingDeps): Promise<Tracing | undefined> {
  if (!config) return undefined;
  const { createTracing } = await import("./sdk.ts");
  return createTracing(config, deps);
}
