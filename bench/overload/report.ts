/** The overload measurement as tables: the outcome of requests at each rate, and the resources of the processes. */
import { workloads } from "../load/workloads.ts";
import { count } from "../report/conditions.ts";
import { type Found, SLICE_MS, type Slice } from "./counts.ts";
import type { OverloadResults } from "./measure.ts";

/** Goals at the highest rate. */
const GOALS = { goodput: 0.95, delay: 3, recoveryMs: 2_000 };

export function overloadReport(results: OverloadResults): string {
  const { at, machine, settings, workload, peak, ordersPerSecond, connections } = results;
  const title = workloads.find(({ name }) => name === workload)?.title ?? "";
  const lines = [
    `${at.slice(0, 10)}: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, Node ${machine.node}, MongoDB ${machine.mongod}. ` +
      `\`${workload}\` (${title}), ${count(settings.pets)} pets, ${settings.seconds} s at each rate. The peak is the rate of 50 callers ` +
      `who each wait for their answer: ${count(peak)} answers a second. At all rates, ${ordersPerSecond} orders a second are placed as well, and each is completed at once.`,
    "",
    "The load is an open loop: a process of its own sends requests at random moments, whatever became of earlier requests, " +
      `over ${connections} connections. Delays count from the moment when a request was due. Generator, petstore and MongoDB share the cores. The generator has a ` +
      "higher priority than all but the gateway, and the gateway, where the bench is run as root, than the services and MongoDB. So at ten times the peak the petstore lacks the " +
      "processor time that the generator and the refusals take.",
    "",
    ...goals(results),
    "| of the peak | sent/s | answered/s | p50, ms | p99, ms | refused with 503, /s | other answers | p99 of refusals, ms |",
    "|--:|--:|--:|--:|--:|--:|---|--:|",
    ...results.shares.map((share, i) => floodRow(results, share, i)),
    "",
    "### Orders beside it",
    "",
    "| of the peak | placed | refused | p99, ms | completed | refused | p99, ms |",
    "|--:|--:|--:|--:|--:|--:|--:|",
    ...results.shares.map((share, i) => ordersRow(results, share, i)),
    "",
    "### Processor time in % of a core, and most memory in MiB",
    "",
    `| of the peak | ${names(results).join(" | ")} | others |`,
    `|--:|${names(results)
      .map(() => "--:|")
      .join("")}--:|`,
    ...results.shares.map((share, i) => processesRow(results, share, i)),
    "",
  ];
  return lines.join("\n");
}

const names = ({ processes }: OverloadResults): string[] => Object.keys(processes[0] ?? {});
const done = ({ statuses }: Found): number =>
  Object.entries(statuses).reduce((sum, [status, n]) => (status.startsWith("2") ? sum + n : sum), 0);
const refused = ({ statuses }: Found): number => statuses[503] ?? 0;
const ms = (value: number): string => (value < 10 ? value.toFixed(1) : count(value));

/** The figures that the goals are about: at the highest rate, compared with the first, and in the slices after the highest. */
export function judged({ shares, phases, peak, atPeak, processes, settings, slices }: OverloadResults) {
  const highest = shares.indexOf(Math.max(...shares));
  const [calm, flood] = [phases[0]?.flood, phases[highest]?.flood];
  if (!calm || !flood) throw new Error("Nothing was measured.");
  const after = slices.slice(Math.round(((highest + 1) * settings.seconds * 1000) / SLICE_MS));
  const goodput = done(flood) / settings.seconds / peak;
  const [had, atPeakHad] = [timeOf(processes[highest] ?? {}), timeOf(atPeak)];
  return {
    goodput,
    byTime: (goodput * atPeakHad) / had,
    refusalMicros: (1e6 * settings.seconds * (had - GOALS.goodput * atPeakHad)) / refused(flood),
    delay: flood.p99 / calm.p99,
    recoveryMs: recovery(after, calm.p99),
  };
}

/** The cores that all processes but the generator used. */
const timeOf = (taken: OverloadResults["atPeak"]): number =>
  Object.entries(taken).reduce((sum, [name, { cpu }]) => (name === "generator" ? sum : sum + cpu), 0);

/** Milliseconds until nothing is refused any more and delays are near their first values. Undefined if that does not happen. */
export function recovery(after: readonly Slice[], calmP99: number): number | undefined {
  const isNormal = ({ refused, p99 }: Slice) => refused === 0 && p99 <= GOALS.delay * calmP99;
  const first = after.findLastIndex((slice) => !isNormal(slice)) + 1;
  return first < after.length ? first * SLICE_MS : undefined;
}

function goals(results: OverloadResults): string[] {
  const { goodput, byTime, refusalMicros, delay, recoveryMs } = judged(results);
  const row = (what: string, goal: string, here: string, isReached: boolean) =>
    `| ${what} | ${goal} | ${here} | ${isReached ? "reached" : "**not reached**"} |`;
  return [
    "| at ten times the peak | goal | here | |",
    "|---|---|---|---|",
    row(
      "answers, of those at the peak",
      `at least ${100 * GOALS.goodput} %`,
      `${count(100 * goodput)} %`,
      goodput >= GOALS.goodput,
    ),
    `| the same for equal processor time | | ${count(100 * byTime)} % | |`,
    row(
      "p99 of answers, against that at half the peak",
      `at most ${GOALS.delay}x`,
      `${delay.toFixed(1)}x`,
      delay <= GOALS.delay,
    ),
    row(
      "back to normal after",
      `at most ${GOALS.recoveryMs / 1000} s`,
      recoveryMs === undefined ? "not within the time" : `${recoveryMs / 1000} s`,
      recoveryMs !== undefined && recoveryMs <= GOALS.recoveryMs,
    ),
    "",
    ...(goodput >= GOALS.goodput ? [] : [refusalsToReachIt(refusalMicros), ""]),
  ];
}

const refusalsToReachIt = (micros: number): string =>
  `To reach the first, a refusal may cost all processes together ${
    micros > 0 ? `${count(micros)} µs` : "nothing, and less: the generator takes too much of the machine"
  }.`;

function floodRow({ phases, settings }: OverloadResults, share: number, i: number): string {
  const flood = phases[i]?.flood as Found;
  const each = (value: number) => count(value / settings.seconds);
  const others = Object.entries(flood.statuses)
    .filter(([status]) => !status.startsWith("2") && status !== "503")
    .map(([status, n]) => `${n} of ${status === "0" ? "none" : status}`);
  const cells = [
    each(flood.sent),
    each(done(flood)),
    ms(flood.p50),
    ms(flood.p99),
    each(refused(flood)),
    others.join(", ") || "none",
    ms(flood.refusedP99),
  ];
  return `| ${share}x | ${cells.join(" | ")} |`;
}

function ordersRow({ phases }: OverloadResults, share: number, i: number): string {
  const { place, complete } = phases[i] as OverloadResults["phases"][number];
  const cells = [place, complete].flatMap((found) => [done(found), found.sent - done(found), ms(found.p99)]);
  return `| ${share}x | ${cells.join(" | ")} |`;
}

function processesRow(results: OverloadResults, share: number, i: number): string {
  const taken = results.processes[i] ?? {};
  const cells = names(results).map((name) => {
    const { cpu = 0, peakBytes = 0 } = taken[name] ?? {};
    return `${count(100 * cpu)} %, ${count(peakBytes / 2 ** 20)}`;
  });
  const others = (results.others[i] ?? 0) * results.machine.cores;
  return `| ${share}x | ${cells.join(" | ")} | ${count(100 * others)} % |`;
}
