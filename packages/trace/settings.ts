/** The settings for traces: OpenTelemetry's own, with their meaning. Its exporter reads further ones by itself. */
import { format, integer, oneOf, optional, text, type Values, withDefault } from "@petstore/runtime/environment";
import { ATTR_SERVICE_NAME } from "./names.ts";
import type { TracingConfig } from "./tracing.ts";

const receiver = format(
  "the http or https address of an OTLP receiver such as http://127.0.0.1:4318",
  // Without a name and a password, for settings are shown.
  (value) => (/^https?:\/\/[^@]+$/i.test(value) && URL.canParse(value) ? value : undefined),
);
const protocol = oneOf("http/protobuf");

const part = format("a number from 0 to 1, such as 0.01", (value) =>
  /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(value) && Number(value) <= 1 ? Number(value) : undefined,
);

const resourceAttributes = format(
  "a comma-separated list of names with their values, such as deployment.environment.name=test, with what is special percent-encoded",
  (value) => {
    const all: Record<string, string> = {};
    for (const item of value.split(",").filter((one) => one.trim() !== "")) {
      const [, name, encoded] = /^\s*([^=\s]+)\s*=(.*)$/.exec(item) ?? [];
      if (name === undefined || encoded === undefined) return undefined;
      try {
        all[decodeURIComponent(name)] = decodeURIComponent(encoded.trim());
      } catch {
        return undefined;
      }
    }
    return all;
  },
);

const MAX_MS = 2 ** 31 - 1;
const MAX_SPANS = 1_000_000;

export const traceSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(receiver),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(receiver),
  OTEL_EXPORTER_OTLP_PROTOCOL: optional(protocol),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: optional(protocol),
  OTEL_TRACES_EXPORTER: withDefault(oneOf("otlp", "none"), "otlp"),
  OTEL_SDK_DISABLED: optional(text),
  OTEL_TRACES_SAMPLER: withDefault(
    oneOf(
      ...["always_on", "always_off", "traceidratio"],
      ...["parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"],
    ),
    "parentbased_always_on",
  ),
  OTEL_TRACES_SAMPLER_ARG: withDefault(part, 1),
  OTEL_SERVICE_NAME: optional(text),
  OTEL_RESOURCE_ATTRIBUTES: withDefault(resourceAttributes, {}),
  OTEL_BSP_SCHEDULE_DELAY: withDefault(integer(0, MAX_MS), 5_000),
  OTEL_BSP_EXPORT_TIMEOUT: withDefault(integer(1, MAX_MS), 30_000),
  OTEL_BSP_MAX_QUEUE_SIZE: withDefault(integer(1, MAX_SPANS), 2_048),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: withDefault(integer(1, MAX_SPANS), 512),
};

/** What the variables say; what records spans says of itself what else there is. */
export type TraceConfig = Omit<TracingConfig, "scope">;

const PARENT_BASED = "parentbased_";

/** Undefined where traces are off: no receiver is named, or they are switched off. */
export function traceConfig(values: Values<typeof traceSettings>): TraceConfig | undefined {
  const isNamed = values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? values.OTEL_EXPORTER_OTLP_ENDPOINT;
  const isDisabled = values.OTEL_SDK_DISABLED?.toLowerCase() === "true" || values.OTEL_TRACES_EXPORTER === "none";
  if (isNamed === undefined || isDisabled) return undefined;
  const { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio, OTEL_SERVICE_NAME } = values;
  const followsCallers = sampler.startsWith(PARENT_BASED);
  const ratios = { always_on: 1, always_off: 0, traceidratio: ratio };
  const maxQueueSize = values.OTEL_BSP_MAX_QUEUE_SIZE;
  return {
    followsCallers,
    ratio: ratios[sampler.replace(PARENT_BASED, "") as keyof typeof ratios],
    resource: {
      ...values.OTEL_RESOURCE_ATTRIBUTES,
      ...(OTEL_SERVICE_NAME !== undefined && { [ATTR_SERVICE_NAME]: OTEL_SERVICE_NAME }),
    },
    batches: {
      scheduledDelayMillis: values.OTEL_BSP_SCHEDULE_DELAY,
      exportTimeoutMillis: values.OTEL_BSP_EXPORT_TIMEOUT,
      maxQueueSize,
      maxExportBatchSize: Math.min(values.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, maxQueueSize),
    },
  };
}
