/** What Node and the system know of the process, by OpenTelemetry's names. */
import { readdirSync } from "node:fs";
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from "node:perf_hooks";
import { getHeapSpaceStatistics } from "node:v8";
import { counter, gauge, histogram } from "./declaration.ts";
import type { Registry } from "./registry.ts";

const delay = (part: string, what: string) =>
  gauge(`nodejs_eventloop_delay_${part}_seconds`, `${what} delay of the event loop since the last scrape.`, []);

export const NODE_METRICS = {
  delayMin: delay("min", "Least"),
  delayMax: delay("max", "Greatest"),
  delayMean: delay("mean", "Mean"),
  delayP50: delay("p50", "Median"),
  delayP90: delay("p90", "90th percentile of the"),
  delayP99: delay("p99", "99th percentile of the"),
  eventLoopTime: counter(
    "nodejs_eventloop_time_seconds_total",
    "Time that the event loop was active, and that it was idle.",
    ["nodejs_eventloop_state"],
  ),
  gcDuration: histogram(
    "v8js_gc_duration_seconds",
    "How long garbage collections took.",
    ["v8js_gc_type"],
    [0.01, 0.1, 1, 10],
  ),
  heapUsed: gauge("v8js_memory_heap_used_bytes", "Memory in use in each space of V8's heap.", ["v8js_heap_space_name"]),
  heapSize: gauge("v8js_memory_heap_space_size_bytes", "Memory set aside for each space of V8's heap.", [
    "v8js_heap_space_name",
  ]),
  cpuTime: counter("process_cpu_time_seconds_total", "Processor time that the process used.", ["cpu_mode"]),
  memory: gauge("process_memory_usage_bytes", "Physical memory that the process has.", []),
  uptime: gauge("process_uptime_seconds", "How long the process has run.", []),
  openFiles: gauge("process_open_fds", "Open files and sockets. On Linux alone.", []),
} as const;

const GC_TYPES: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb",
};
const NS = 1e9;

/** Begins to measure. To be called once in a process. */
export function measureNode({ read, histogram }: Registry): void {
  const all = NODE_METRICS;
  const delays = monitorEventLoopDelay({ samplePerIteration: true }); // no timer that wakes a process with nothing to do
  delays.enable();
  const parts = [
    [all.delayMin, () => delays.min],
    [all.delayMax, () => delays.max],
    [all.delayMean, () => delays.mean],
    [all.delayP50, () => delays.percentile(50)],
    [all.delayP90, () => delays.percentile(90)],
    [all.delayP99, () => delays.percentile(99)],
  ] as const;
  for (const [declaration, value] of parts)
    read(declaration, (tell) => {
      if (delays.count > 0) tell(value() / NS);
      if (declaration === all.delayP99) delays.reset(); // the last one that is read
    });

  read(all.eventLoopTime, (tell) => {
    const { active, idle } = performance.eventLoopUtilization();
    tell(active / 1000, "active");
    tell(idle / 1000, "idle");
  });
  const collections = histogram(all.gcDuration);
  new PerformanceObserver((entries) => {
    for (const { duration, detail } of entries.getEntries() as (PerformanceEntry & { detail: { kind: number } })[])
      collections.of(GC_TYPES[detail.kind] ?? "_OTHER").record(duration / 1000);
  }).observe({ entryTypes: ["gc"] });
  const spaces = () => getHeapSpaceStatistics().filter(({ space_size: bytes }) => bytes > 0);
  read(all.heapUsed, (tell) => {
    for (const { space_name: name, space_used_size: bytes } of spaces()) tell(bytes, name);
  });
  read(all.heapSize, (tell) => {
    for (const { space_name: name, space_size: bytes } of spaces()) tell(bytes, name);
  });
  read(all.cpuTime, (tell) => {
    const { user, system } = process.cpuUsage();
    tell(user / 1e6, "user");
    tell(system / 1e6, "system");
  });
  read(all.memory, (tell) => tell(process.memoryUsage.rss()));
  read(all.uptime, (tell) => tell(process.uptime()));
  if (process.platform === "linux") read(all.openFiles, (tell) => tell(readdirSync("/proc/self/fd").length - 1)); // but the one that reads this
}
