import { describe, expect, test } from "vitest";
import { recordedTracing } from "./fixtures/recorded.ts";
import type { Sender } from "./tracing.ts";

const TRACE = "12345678901234567890123456789012";
const SPAN = "1234567890123456";

/** What comes of a request with these headers. */
function begun(sender: Sender, headers: Record<string, string>, options: Parameters<typeof recordedTracing>[0] = {}) {
  const { tracing, spans } = recordedTracing(options);
  const span = tracing.start(
    "work",
    "server",
    tracing.accept((name) => headers[name], sender),
  );
  span.end();
  return { context: span.context, spans: spans() };
}

const sampled = { traceparent: `00-${TRACE}-${SPAN}-01` };
const unsampled = { traceparent: `00-${TRACE}-${SPAN}-00` };

describe("a caller's trace", () => {
  test("goes on, with what others note of it", () => {
    const { context, spans } = begun("stranger", { ...sampled, tracestate: "foo=1" });
    expect(context).toMatchObject({ traceId: TRACE, sampled: true, state: "foo=1" });
    expect(spans).toMatchObject([{ name: "work", kind: "server", traceId: TRACE, parentId: SPAN }]);
    expect(spans[0]?.spanId).toBe(context.spanId);
    expect(context.spanId).not.toBe(SPAN);
  });
  test("is another one if its traceparent is none; then its tracestate means nothing", () => {
    const { context, spans } = begun("stranger", { traceparent: "00-1-2-01", tracestate: "foo=1" });
    expect(context.traceId).toMatch(/^[\da-f]{32}$/);
    expect(context.state).toBeUndefined();
    expect(spans).toMatchObject([{ parentId: undefined }]);
  });

  // Each row: who sends it, its flag, the part that is recorded by itself, and whether it is.
  test.each<[Sender, object, number, boolean]>([
    ["stranger", sampled, 0, false],
    ["stranger", unsampled, 1, true],
    ["trusted proxy", sampled, 0, true],
    ["trusted proxy", unsampled, 1, false],
    ["own process", sampled, 0, true],
    ["own process", unsampled, 1, false],
  ])("%s: %j of %d is recorded: %s", (sender, headers, ratio, isRecorded) => {
    const { context, spans } = begun(sender, headers as Record<string, string>, { ratio });
    expect([context.traceId, context.sampled, spans.length]).toEqual([TRACE, isRecorded, isRecorded ? 1 : 0]);
  });
  test("is not decided by a proxy where the sampler follows no caller, but still by processes of the petstore", () => {
    const options = { ratio: 0, followsCallers: false };
    expect(begun("trusted proxy", sampled, options).context.sampled).toBe(false);
    expect(begun("own process", sampled, options).context.sampled).toBe(true);
  });
});

test("a part of the traces is recorded, whatever id a caller has chosen", () => {
  const draws = [0.009, 0.011];
  const options = { ratio: 0.01, random: () => draws.shift() ?? 1 };
  const { tracing } = recordedTracing(options);
  const origin = { traceId: `${"0".repeat(31)}1` };
  expect([1, 2].map(() => tracing.start("work", "server", origin).context.sampled)).toEqual([true, false]);
});

test("a trace that begins here has the id that it is given", () => {
  const { tracing, spans } = recordedTracing();
  tracing.start("work", "server", { traceId: TRACE }).end();
  expect(spans()).toMatchObject([{ traceId: TRACE, parentId: undefined }]);
});

test("what is not recorded goes on under its caller's span", () => {
  const { tracing, spans } = recordedTracing({ ratio: 0 });
  const root = tracing.start("work", "server", undefined);
  root.set({ a: 1 });
  root.fail("500");
  root.link(root.context);
  root.end();
  expect(root.context).toMatchObject({ sampled: false, spanId: expect.stringMatching(/^[\da-f]{16}$/) });
  expect(tracing.start("more", "internal", root.context).context).toEqual(root.context);
  expect(spans()).toEqual([]);
});

test("what is done for recorded traces is recorded", () => {
  const { tracing, spans } = recordedTracing({ ratio: 0 });
  const span = tracing.start("recovery", "internal", undefined, {}, [{ traceId: TRACE, spanId: SPAN, sampled: true }]);
  span.link({ traceId: TRACE.replace("1", "a"), spanId: SPAN, sampled: true });
  span.fail("Error");
  span.end();
  expect(spans()).toMatchObject([
    { links: [TRACE, TRACE.replace("1", "a")], hasFailed: true, attributes: { "error.type": "Error" } },
  ]);
});
