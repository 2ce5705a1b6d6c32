/** Spans by OpenTelemetry's SDK, sent by its OTLP exporter, which reads its own OTEL_EXPORTER_OTLP_* variables. */
import {
  type Span as ApiSpan,
  createTraceState,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { setGlobalErrorHandler } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  RandomIdGenerator,
  type SpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { readTraceparent, readTracestate, TRACEPARENT, TRACESTATE, type TraceContext } from "./context.ts";
import { ATTR_ERROR_TYPE } from "./names.ts";
import type { TracingConfig, TracingDeps } from "./open.ts";
import type { Attributes, Span, Tracing } from "./tracing.ts";

/** Milliseconds between two lines of the log about a receiver that does not take what it gets. */
const LOG_EVERY_MS = 60_000;
/** Time for what was recorded last, at the end of a process, in milliseconds. */
const FLUSH_MS = 2_000;

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

export function createTracing(
  { followsCallers, ratio, resource, batches }: TracingConfig,
  { clock, random, sleep, log }: TracingDeps,
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
  /** The id of the trace that the next span begins. */
  let next = "";
  const provider = new TracerProvider({
    resource: resourceFromAttributes(resource),
    // What is not recorded does not come here.
    sampler: new AlwaysOnSampler(),
    idGenerator: { generateTraceId: () => next, generateSpanId: () => ids.generateSpanId() },
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer("petstore");

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

    start(name, kind, origin = { traceId: ids.generateTraceId() }, attributes = {}, links = []) {
      const { traceId, spanId, state } = origin;
      next = traceId;
      const parent =
        spanId === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, inSdk({ traceId, spanId, state }));
      const options = { kind: kinds[kind], attributes, links: links.map((link) => ({ context: inSdk(link) })) };
      return new Recorded(tracer.startSpan(name, options, parent), state);
    },

    async close() {
      const over = new AbortController();
      const flushed = provider.shutdown().catch(tell);
      await Promise.race([flushed, sleep(FLUSH_MS, over.signal)]).finally(() => over.abort());
    },
  };
}

const inSdk = ({ traceId, spanId, state }: TraceContext): SpanContext => ({
  traceId,
  spanId,
  traceFlags: TraceFlags.SAMPLED,
  ...(state !== undefined && { traceState: createTraceState(state) }),
});

class Recorded implements Span {
  readonly context: TraceContext;
  readonly #span: ApiSpan;

  constructor(span: ApiSpan, state: string | undefined) {
    const { traceId, spanId } = span.spanContext();
    this.context = { traceId, spanId, state };
    this.#span = span;
  }
  set(attributes: Attributes): void {
    this.#span.setAttributes(attributes);
  }
  link(to: TraceContext): void {
    this.#span.addLink({ context: inSdk(to) });
  }
  fail(type: string): void {
    this.#span.setAttribute(ATTR_ERROR_TYPE, type).setStatus({ code: SpanStatusCode.ERROR });
  }
  end(): void {
    this.#span.end();
  }
}
