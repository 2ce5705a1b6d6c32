import { readEnvironment } from "@petstore/runtime/environment";
import { describe, expect, test } from "vitest";
import { traceConfig, traceSettings } from "./settings.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
const configOf = (environment: Record<string, string>) => traceConfig(readEnvironment(environment, traceSettings));

describe("traces are on where a receiver is named", () => {
  test.each([
    [ENDPOINT],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://otlp.example:4318/v1/traces" }],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: "false", OTEL_TRACES_EXPORTER: "otlp" }],
    [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" }],
  ])("%j", (environment) => expect(configOf(environment)).toMatchObject({ followsCallers: true, ratio: 1 }));
  test.each([
    [{}],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: " " }],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }],
    [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }],
    [{ OTEL_TRACES_SAMPLER: "always_on" }],
  ])("not with %j", (environment: Record<string, string>) => expect(configOf(environment)).toBeUndefined());
});

test.each([
  ["always_on", false, 1],
  ["always_off", false, 0],
  ["traceidratio", false, 0.25],
  ["parentbased_always_on", true, 1],
  ["parentbased_always_off", true, 0],
  ["parentbased_traceidratio", true, 0.25],
])("%s", (sampler, followsCallers, ratio) => {
  const environment = { ...ENDPOINT, OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: "0.25" };
  expect(configOf(environment)).toMatchObject({ followsCallers, ratio });
});

test.each([
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is wrong: it must be http/protobuf."],
  [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json" }, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json is wrong"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "127.0.0.1:4318" }, "must be the http or https address of an OTLP receiver"],
  [
    { OTEL_TRACES_SAMPLER: "jaeger_remote" },
    "must be always_on or always_off or traceidratio or parentbased_always_on",
  ],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://me:secret@host:4318" }, "must be the http or https address of an OTLP"],
  [{ OTEL_TRACES_SAMPLER_ARG: "2" }, "must be a number from 0 to 1"],
  [{ OTEL_TRACES_SAMPLER_ARG: "1e-3" }, "must be a number from 0 to 1"],
  [{ OTEL_TRACES_EXPORTER: "zipkin" }, "must be otlp or none"],
  [{ OTEL_RESOURCE_ATTRIBUTES: "a" }, "must be a comma-separated list of names with their values"],
  [{ OTEL_RESOURCE_ATTRIBUTES: "a=%" }, "must be a comma-separated list of names with their values"],
])("%j is refused", (environment, problem) => expect(() => configOf(environment as never)).toThrow(problem));

test("the variables describe the process", () => {
  const named = {
    OTEL_SERVICE_NAME: "shop",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=x, deployment.environment.name=a%2Cb",
  };
  expect(configOf({ ...ENDPOINT, ...named })?.resource).toEqual({
    "service.name": "shop",
    "deployment.environment.name": "a,b",
  });
});

test("spans are collected as the variables say", () => {
  const batches = { OTEL_BSP_SCHEDULE_DELAY: "50", OTEL_BSP_EXPORT_TIMEOUT: "60", OTEL_BSP_MAX_QUEUE_SIZE: "70" };
  expect(configOf({ ...ENDPOINT, ...batches })?.batches).toEqual({
    scheduledDelayMillis: 50,
    exportTimeoutMillis: 60,
    maxQueueSize: 70,
    maxExportBatchSize: 70,
  });
});
