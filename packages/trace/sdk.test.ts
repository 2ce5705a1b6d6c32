import { setTimeout } from "node:timers/promises";
import { diag } from "@opentelemetry/api";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { config, recordedTracing } from "./fixtures/recorded.ts";
import { createTracing } from "./sdk.ts";
import type { Sender } from "./tracing.ts";

const TRACE = "12345678901234567890123456789012";
const SPAN = "1234567890123456";

/** What comes of a request with these headers. */
function begun(
  sender: Sender,
  headers: Record<string, string>,
  options: Parameters<typeof recordedTracing>[0] = {},
  id?: string,
) {
  const { tracing, spans } = recordedTracing(options);
  const origin = tracing.accept((name) => headers[name], sender, id);
  const span = origin && tracing.start("work", "server", origin);
  span?.end();
  return { context: span?.context, spans: spans() };
}

const sampled = { traceparent: `00-${TRACE}-${SPAN}-01` };
const unsampled = { traceparent: `00-${TRACE}-${SPAN}-00` };

describe("a caller's trace", () => {
  test("goes on, with what others note of it", () => {
    const { context, spans } = begun("stranger", { ...sampled, tracestate: "foo=1" });
    expect(context).toMatchObject({ traceId: TRACE, state: "foo=1" });
    expect(spans).toMatchObject([{ name: "work", kind: "server", traceId: TRACE, parentId: SPAN, state: "foo=1" }]);
    expect(spans[0]?.spanId).toBe(context?.spanId);
    expect(context?.spanId).not.toBe(SPAN);
  });
  test("is another one if its traceparent is none; then its tracestate means nothing", () => {
    const { context, spans } = begun("stranger", { traceparent: "00-1-2-01", tracestate: "foo=1" });
    expect(context?.traceId).toMatch(/^[\da-f]{32}$/);
    expect(context?.state).toBeUndefined();
    expect(spans).toMatchObject([{ parentId: undefined }]);
  });
  test("that begins here has the id that it is given, and no other trace has it", () => {
    expect(begun("stranger", {}, {}, TRACE).spans).toMatchObject([{ traceId: TRACE, parentId: undefined }]);
    const other = "0af7651916cd43dd8448eb211c80319c";
    expect(begun("stranger", sampled, {}, other).spans).toMatchObject([{ traceId: TRACE }]);
  });

  // Each row: who sends it, its flag, the part that is recorded by itself, and whether it is.
  test.each<[Sender, object, number, boolean]>([
    ["stranger", sampled, 0, false],
    ["stranger", unsampled, 1, true],
    ["stranger", {}, 0, false],
    ["stranger", {}, 1, true],
    ["trusted proxy", sampled, 0, true],
    ["trusted proxy", unsampled, 1, false],
    ["trusted proxy", {}, 1, true],
    ["own process", sampled, 0, true],
    ["own process", unsampled, 1, false],
    ["own process", {}, 1, false],
  ])("%s: %j of %d is recorded: %s", (sender, headers, ratio, isRecorded) => {
    expect(begun(sender, headers as Record<string, string>, { ratio }).spans).toHaveLength(isRecorded ? 1 : 0);
  });
  test("is not decided by a proxy where the sampler follows no caller, but still by processes of the petstore", () => {
    const options = { ratio: 0, followsCallers: false };
    expect(begun("trusted proxy", sampled, options).spans).toEqual([]);
    expect(begun("own process", sampled, options).spans).toHaveLength(1);
  });
});

test("a part of the traces is recorded, whatever id a caller has chosen", () => {
  const draws = [0.009, 0.011];
  const { tracing } = recordedTracing({ ratio: 0.01, random: () => draws.shift() ?? 1 });
  const headers: Record<string, string> = { traceparent: `00-${"0".repeat(31)}1-${SPAN}-01` };
  const isRecorded = () => tracing.accept((name) => headers[name], "stranger") !== undefined;
  expect([isRecorded(), isRecorded()]).toEqual([true, false]);
});

test("a span lasts from its begin to its end", async () => {
  const { tracing, spans } = recordedTracing();
  const before = Date.now();
  const span = tracing.start("work", "internal", undefined);
  await setTimeout(30);
  span.end();
  const [{ startedAt, endedAt } = expect.unreachable()] = spans();
  expect(startedAt).toBeGreaterThanOrEqual(before);
  // A timer may fire a millisecond early, and the clock be set.
  expect(endedAt - startedAt).toBeGreaterThan(28);
  expect(Math.abs(endedAt - Date.now())).toBeLessThan(60_000);
});

test("work may lead to other traces, and fail", () => {
  const { tracing, spans } = recordedTracing({ ratio: 0 });
  const span = tracing.start("recovery", "internal", undefined, {}, [{ traceId: TRACE, spanId: SPAN }]);
  span.link({ traceId: TRACE.replace("1", "a"), spanId: SPAN });
  span.set({ units: 2 });
  span.fail("Error");
  span.end();
  expect(spans()).toMatchObject([
    {
      traceId: expect.not.stringMatching(TRACE),
      links: [TRACE, TRACE.replace("1", "a")],
      hasFailed: true,
      attributes: { units: 2, "error.type": "Error" },
    },
  ]);
});

test("what OpenTelemetry warns of is in the log, among it a setting that it can't read", async () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon");
  onTestFinished(() => void vi.unstubAllEnvs());
  const lines: object[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  let now = 0;
  const tracing = createTracing(config, { ...realTime, clock: () => now, log });
  expect(lines).toMatchObject([{ why: expect.stringContaining("OTEL_EXPORTER_OTLP_TIMEOUT") }]);
  now = 60_000;
  diag.warn("The receiver is away", new Error("ECONNREFUSED"), 14);
  expect(lines[1]).toMatchObject({ why: "The receiver is away 14", err: { message: "ECONNREFUSED" } });
  await tracing.close();
});
