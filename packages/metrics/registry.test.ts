import { getHeapStatistics } from "node:v8";
import { expect, test } from "vitest";
import { counter, gauge, histogram, unitOf } from "./declaration.ts";
import { formFor } from "./exposition.ts";
import { measureNode, NODE_METRICS } from "./node.ts";
import { createRegistry } from "./registry.ts";

const DURATION = histogram("call_duration_seconds", "How long calls took.", ["method", "status"], [0.5, 1, 2.5]);
const CALLS = counter("calls_total", "Calls.", ["method", "status"]);
const OPEN = gauge("open_calls", "Calls that are under way.", ["method"]);

const NOW = 1_700_000_000_250;
const start = () => createRegistry(() => NOW);
const trace = { traceId: "a".repeat(32), spanId: "b".repeat(16) };

test("a value is in the first bucket whose bound it does not exceed", () => {
  const registry = start();
  const { record } = registry.histogram(DURATION).of("Get", "ok");
  for (const value of [0, 0.5, 0.51, 2.5, 3, 100]) record(value);
  expect(registry.text("plain")).toBe(`# HELP call_duration_seconds How long calls took.
# TYPE call_duration_seconds histogram
call_duration_seconds_bucket{method="Get",status="ok",le="0.5"} 2
call_duration_seconds_bucket{method="Get",status="ok",le="1.0"} 3
call_duration_seconds_bucket{method="Get",status="ok",le="2.5"} 4
call_duration_seconds_bucket{method="Get",status="ok",le="+Inf"} 6
call_duration_seconds_sum{method="Get",status="ok"} 106.51
call_duration_seconds_count{method="Get",status="ok"} 6
`);
});

test("OpenMetrics has units, counters without their suffix, exemplars, and an end", () => {
  const registry = start();
  const { of } = registry.histogram(DURATION);
  of("Get", "ok").record(0.7, trace);
  of("Get", "ok").record(0.8, undefined);
  of("Get", "ok").record(9);
  registry.counter(CALLS).of("Get", "ok").add();
  expect(registry.text("openmetrics")).toBe(`# HELP call_duration_seconds How long calls took.
# TYPE call_duration_seconds histogram
# UNIT call_duration_seconds seconds
call_duration_seconds_bucket{method="Get",status="ok",le="0.5"} 0
call_duration_seconds_bucket{method="Get",status="ok",le="1.0"} 2 # {trace_id="${trace.traceId}",span_id="${trace.spanId}"} 0.7 1700000000.25
call_duration_seconds_bucket{method="Get",status="ok",le="2.5"} 2
call_duration_seconds_bucket{method="Get",status="ok",le="+Inf"} 3
call_duration_seconds_sum{method="Get",status="ok"} 10.5
call_duration_seconds_count{method="Get",status="ok"} 3
# HELP calls Calls.
# TYPE calls counter
calls_total{method="Get",status="ok"} 1
# EOF
`);
  expect(registry.text("plain")).not.toContain("trace_id");
});

test("each combination of labels counts for itself; an empty one is absent, others are escaped", () => {
  const registry = start();
  const { of } = registry.counter(CALLS);
  of("Get", "").add();
  of("Get", 'a "b"\n\\').add(2);
  of("Get", "").add(3);
  expect(registry.text("plain").split("\n").slice(2)).toEqual([
    'calls_total{method="Get"} 4',
    String.raw`calls_total{method="Get",status="a \"b\"\n\\"} 2`,
    "",
  ]);
});

test("what is read is read when it is asked for, added up, and no more once it is over", () => {
  const registry = start();
  let open = 1;
  const end = registry.read(OPEN, (tell) => tell(open, "Get"));
  registry.read(OPEN, (tell) => {
    tell(10, "Get");
    tell(Number.POSITIVE_INFINITY, "List");
  });
  open = 2;
  const lines = () => registry.text("plain").split("\n").slice(2, -1);
  expect(lines()).toEqual(['open_calls{method="Get"} 12', 'open_calls{method="List"} +Inf']);
  end();
  expect(lines()).toEqual(['open_calls{method="Get"} 10', 'open_calls{method="List"} +Inf']);
});

test("a metric is the same wherever it is asked for, and no other has its name", () => {
  const registry = start();
  registry.counter(CALLS).of("Get", "ok").add();
  registry.counter(CALLS).of("Get", "ok").add();
  expect(registry.text("plain")).toContain('calls_total{method="Get",status="ok"} 2');
  expect(() => registry.counter(counter("calls_total", "Others.", []))).toThrow("calls_total is declared twice.");
  const many = counter("many_total", "Many.", ["a", "b", "c", "d", "e", "f"]);
  expect(() => registry.counter(many)).toThrow("many_total has more than 5 labels.");
});

test.each([
  [undefined, "plain"],
  ["*/*", "plain"],
  ["text/html", "plain"],
  ["application/openmetrics-text; version=1.0.0", "openmetrics"],
  ["application/openmetrics-text", "openmetrics"],
  ["application/openmetrics-text;version=0.0.1", "plain"],
  ["application/openmetrics-text;version=1.0.0;q=0.5, text/plain", "plain"],
  ["application/openmetrics-text;q=0", "plain"],
  // As Prometheus 3 asks.
  [
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5," +
      "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    "openmetrics",
  ],
])("Accept: %s gets the form %s", (accept, form) => {
  expect(formFor(accept)).toBe(form);
});

test("the unit is in the name", () => {
  expect([DURATION, CALLS, gauge("memory_bytes", "", []), counter("x_seconds_total", "", [])].map(unitOf)).toEqual([
    ...["seconds", "", "bytes", "seconds"],
  ]);
});

test("a record allocates nothing, once its code is compiled", async () => {
  const registry = start();
  const { of } = registry.histogram(DURATION);
  const calls = registry.counter(CALLS);
  const values = Array.from({ length: 100 }, (_, i) => i / 50);
  const RECORDS = 50_000;
  const bytesPerRecord = () => {
    const before = getHeapStatistics().total_allocated_bytes;
    for (let i = 0; i < RECORDS; i++) {
      of(i % 2 ? "Get" : "List", "ok").record(values[i % 100] as number, trace);
      calls.of("Get", "ok").add();
    }
    return (getHeapStatistics().total_allocated_bytes - before) / RECORDS;
  };
  await expect.poll(bytesPerRecord, { timeout: 20_000 }).toBeLessThan(1); // a busy machine compiles late
});

test("Node tells of its event loop, its heap and the process", async () => {
  const registry = start();
  measureNode(registry);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const text = registry.text("plain");
  const { gcDuration: _, openFiles, ...others } = NODE_METRICS;
  for (const { name } of Object.values(others)) expect(text).toMatch(new RegExp(`^${name}(\\{.+\\})? \\d`, "m"));
  if (process.platform === "linux") expect(text).toMatch(new RegExp(`^${openFiles.name} [1-9]`, "m"));
  expect(text).toMatch(/^v8js_memory_heap_used_bytes\{v8js_heap_space_name="new_space"\} \d/m);
});
