/** The port for spans. Where traces are off there is no `Tracing`, so whatever would make a span tests for undefined. */
import type { TraceContext } from "./context.ts";

export type Kind = "server" | "client" | "internal";

export type Attributes = Readonly<Record<string, string | number>>;

/** A trace that work comes to belong to: one that its caller is part of, or one that begins with it. */
export interface Origin extends Partial<Omit<TraceContext, "traceId">> {
  readonly traceId: string;
  /** Undefined where it is to be decided here. */
  readonly sampled?: boolean | undefined;
}

/** Who sent a traceparent. A stranger may say which trace it is, but not that it is recorded. */
export type Sender = "own process" | "trusted proxy" | "stranger";

/** A piece of work that is under way. In a trace that is not recorded it is nothing but its context. */
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
  /** The trace that a request belongs to by its headers. Undefined without a valid traceparent. */
  accept(header: (name: string) => string | null | undefined, sender: Sender): Origin | undefined;
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
