/** Spans by OpenTelemetry's SDK, sent by its OTLP exporter, which reads its own OTEL_EXPORTER_OTLP_* variables. */
import {
  createTraceState,
  DiagLogLevel,
  diag,
  type HrTime,
  type Link,
  type SpanContext,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
} from "@opentelemetry/api";
import {
  addHrTimes,
  hrTime,
  hrTimeDuration,
  type InstrumentationScope,
  millisToHrTime,
  setGlobalErrorHandler,
} from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, RandomIdGenerator, type ReadableSpan, type SpanProcessor } from "@opentelemetry/sdk-trace";
import type { WallTime } from "@petstore/runtime/clock";
import { readTraceparent, readTracestate, TRACEPARENT, TRACESTATE, type TraceContext } from "./context.ts";
import { ATTR_ERROR_TYPE } from "./names.ts";
import type { Attributes, Kind, Span, Tracing, TracingConfig, TracingDeps } from "./tracing.ts";

/** Milliseconds between two lines of the log about a receiver that does not take what it gets. */
const LOG_EVERY_MS = 60_000;
/** Time for what was recorded last, at the end of a process, in milliseconds. */
const FLUSH_MS = 2_000;

export function createTracing(
  { scope, followsCallers, ratio, resource, batches }: TracingConfig,
  { clock, wallClock, random, sleep, log }: TracingDeps,
  given?: SpanProcessor,
): Tracing {
  let toldAt = Number.NEGATIVE_INFINITY;
  function tell(...said: unknown[]): void {
    if (clock() - toldAt < LOG_EVERY_MS) return;
    toldAt = clock();
    const err = said.find((one) => one instanceof Error);
    const why = said.filter((one) => one !== err).join(" ") || undefined;
    log.warn({ err, why }, "spans can't be sent to OTEL_EXPORTER_OTLP_ENDPOINT as they should");
  }
  const nothing = () => {};
  setGlobalErrorHandler(tell);
  diag.setLogger(
    { error: tell, warn: tell, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  // Not before the logger is set: it warns about its settings.
  const processor = given ?? new BatchSpanProcessor({ ...batches, exporter: new OTLPTraceExporter() });
  const ids = new RandomIdGenerator();
  const source: Source = { resource: resourceFromAttributes(resource), scope: { name: scope }, processor, wallClock };

  return {
    accept(header, sender, begun) {
      const parent = readTraceparent(header(TRACEPARENT));
      const isOwn = sender === "own process";
      if (isOwn && !parent) return undefined;
      const isDecided = isOwn || (sender === "trusted proxy" && followsCallers);
      // By chance and not by its id, which its caller may have chosen.
      const isRecorded = parent && isDecided ? parent.sampled : random() < ratio;
      if (!isRecorded) return undefined;
      if (!parent) return { traceId: begun ?? ids.generateTraceId() };
      return { traceId: parent.traceId, spanId: parent.spanId, state: readTracestate(header(TRACESTATE)) };
    },

    start(name, kind, { traceId, spanId, state } = { traceId: ids.generateTraceId() }, attributes, links = []) {
      const context = { traceId, spanId: ids.generateSpanId(), state };
      const span = new Recorded(source, name, kind, context, spanId, attributes);
      for (const link of links) span.link(link);
      return span;
    },

    async close() {
      const over = new AbortController();
      const flushed = processor.shutdown().catch(tell);
      await Promise.race([flushed, sleep(FLUSH_MS, over.signal)]).finally(() => over.abort());
    },
  };
}

/** What the spans of a process have in common. */
interface Source extends WallTime {
  readonly scope: InstrumentationScope;
  readonly resource: Resource;
  readonly processor: SpanProcessor;
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };
const UNSET = { code: SpanStatusCode.UNSET };
const ERROR = { code: SpanStatusCode.ERROR };

const inSdk = ({ traceId, spanId, state }: TraceContext): SpanContext => ({
  traceId,
  spanId,
  traceFlags: TraceFlags.SAMPLED,
  traceState: state === undefined ? undefined : createTraceState(state),
});

/**
 * A span as OpenTelemetry's processor and exporter read it, which begins when it is made. The SDK's own tracer copies each of
 * them twice, for samplers and limits that are not used here, which takes as long as all the rest of it.
 */
class Recorded implements Span, ReadableSpan {
  readonly context: TraceContext;
  readonly name: string;
  readonly kind: SpanKind;
  readonly parentSpanContext: SpanContext | undefined;
  readonly startTime: HrTime;
  endTime: HrTime;
  duration: HrTime = [0, 0];
  ended = false;
  status: SpanStatus = UNSET;
  readonly attributes: Record<string, string | number>;
  readonly links: Link[] = [];
  readonly events = [];
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  /** On a clock that nobody sets. */
  readonly #begun = hrTime();
  readonly #processor: SpanProcessor;
  readonly #inSdk: SpanContext;

  /** `parent` is the id of the span that it is a part of. */
  constructor(
    { resource, scope, processor, wallClock }: Source,
    name: string,
    kind: Kind,
    context: TraceContext,
    parent: string | undefined,
    attributes: Attributes | undefined,
  ) {
    this.startTime = millisToHrTime(wallClock());
    this.endTime = this.startTime;
    this.resource = resource;
    this.instrumentationScope = scope;
    this.#processor = processor;
    this.name = name;
    this.kind = KINDS[kind];
    this.context = context;
    this.#inSdk = inSdk(context);
    this.parentSpanContext = parent === undefined ? undefined : inSdk({ traceId: context.traceId, spanId: parent });
    this.attributes = { ...attributes };
  }
  spanContext(): SpanContext {
    return this.#inSdk;
  }
  set(attributes: Attributes): void {
    Object.assign(this.attributes, attributes);
  }
  link(to: TraceContext): void {
    this.links.push({ context: inSdk(to) });
  }
  fail(type: string): void {
    this.attributes[ATTR_ERROR_TYPE] = type;
    this.status = ERROR;
  }
  end(): void {
    this.duration = hrTimeDuration(this.#begun, hrTime());
    this.endTime = addHrTimes(this.startTime, this.duration);
    this.ended = true;
    this.#processor.onEnd(this);
  }
}
