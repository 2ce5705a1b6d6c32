/** Spans by OpenTelemetry's SDK, sent by its OTLP exporter, which reads its own OTEL_EXPORTER_OTLP_* variables. */
import { DiagLogLevel, diag } from "@opentelemetry/api";
import { setGlobalErrorHandler } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, RandomIdGenerator, type SpanProcessor } from "@opentelemetry/sdk-trace";
import { readTraceparent, readTracestate, TRACEPARENT, TRACESTATE } from "./context.ts";
import type { TracingConfig, TracingDeps } from "./open.ts";
import { Recorded, type Source } from "./recorded.ts";
import type { Tracing } from "./tracing.ts";

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
