/**
 * A span as OpenTelemetry's processor and exporter read it. The SDK's own tracer copies each of them twice, for samplers and
 * limits that are not used here, which takes as long as all the rest of it.
 */
import {
  createTraceState,
  type HrTime,
  type Link,
  type SpanContext,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
} from "@opentelemetry/api";
import { addHrTimes, hrTime, hrTimeDuration, type InstrumentationScope, millisToHrTime } from "@opentelemetry/core";
import type { Resource } from "@opentelemetry/resources";
import type { ReadableSpan, SpanProcessor } from "@opentelemetry/sdk-trace";
import type { WallTime } from "@petstore/runtime/clock";
import type { TraceContext } from "./context.ts";
import { ATTR_ERROR_TYPE } from "./names.ts";
import type { Attributes, Kind, Span } from "./tracing.ts";

/** What the spans of a process have in common. */
export interface Source extends WallTime {
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

/** It begins when it is made. */
export class Recorded implements Span, ReadableSpan {
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
