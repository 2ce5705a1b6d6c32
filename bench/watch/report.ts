/** The watch measurement as tables: the goals, the delays of writes and events, and the resources of the processes. */
import { spread } from "../compare/results.ts";
import { count } from "../report/conditions.ts";
import type { Idle, Turn, WatchResults } from "./measure.ts";
import { medianOf, type Quantiles } from "./quantiles.ts";

export const GOALS = { allMs: 250, idleBytes: 50_000 };

type Measured = WatchResults["stores"][number];

export const titles = { mongodb: "on MongoDB", embedded: "on the embedded store" } as const;

export const isWatched = ({ watchers }: Turn): boolean => watchers > 0;
export const isAlone = (turn: Turn): boolean => !isWatched(turn);

/** The median of the rounds, for each percentile. */
export const writesOf = (turns: readonly Turn[]): Quantiles => medianOf(turns.map(({ writes }) => writes));
export const eventsOf = (turns: readonly Turn[], of: "each" | "last"): Quantiles =>
  medianOf(turns.flatMap(({ events }) => (events ? [events[of]] : [])));

/** The figures that the goals are about. */
export function judged({ turns }: Measured) {
  const p50 = (some: readonly Turn[]) => spread(some.map(({ writes }) => writes[50] ?? Number.NaN));
  const [alone, watched] = [p50(turns.filter(isAlone)), p50(turns.filter(isWatched))];
  return {
    alone,
    watched,
    /** Whether the effect lies within the differences between rounds without watchers. */
    isUnmeasurable: watched.median <= alone.max,
    allMs: eventsOf(turns, "last")[50] ?? Number.NaN,
  };
}

/** Bytes per watcher. */
export const bytesOf = ({ before, after }: Idle, watchers: number) => ({
  rss: (after.rss - before.rss) / watchers,
  heap: (after.heap - before.heap) / watchers,
});

/** Processor time of the pet process for each event sent to a watcher, in microseconds. */
export function deliveryMicros(turns: readonly Turn[]): number {
  const rateOf = ({ cpu, seconds, stored }: Turn) => ((cpu.pet ?? 0) * seconds * 1e6) / stored;
  const alone = spread(turns.filter(isAlone).map(rateOf)).median;
  return spread(turns.filter(isWatched).map((turn) => (rateOf(turn) - alone) / turn.watchers)).median;
}

export function watchReport(results: WatchResults): string {
  const { at, machine, settings } = results;
  const { watchers, perConnection, rate, rounds, seconds } = settings;
  const lines = [
    `${at.slice(0, 10)}: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, Node ${machine.node}, MongoDB ${machine.mongod}. ` +
      `${rate} pets a second are changed at the pet service, at random moments of even stretches and whatever has become of the changes before; ${rounds} rounds, ` +
      `each ${seconds} s without watchers and ${seconds} s with ${count(watchers)} that are told of each, by gRPC, ${perConnection} to a connection.`,
    "",
    "Delays count from when a write was due, to its answer or to the event at a watcher. The petstore's five processes, MongoDB, the writer and the " +
      "watchers share the cores; a watcher does no more than find out which write it is told of. Percentiles are the median of the rounds.",
    "",
  ];
  lines.push(...memory(results));
  for (const measured of results.stores) lines.push(`### ${titles[measured.store]}`, "", ...tables(measured, results));
  return lines.join("\n");
}

const HEAD = ["| | goal | here | |", "|---|---|---|---|"];
const goal = (what: string, limit: string, here: string, isReached: boolean) =>
  `| ${what} | ${limit} | ${here} | ${isReached ? "reached" : "**not reached**"} |`;

function memory({ idle, settings: { watchers } }: WatchResults): string[] {
  const rows = idle.map((one) => {
    const { rss, heap } = bytesOf(one, watchers);
    const where = one.perConnection === 1 ? "each on a connection of its own" : `${one.perConnection} to a connection`;
    const here = `${kb(rss)} kB resident, ${kb(heap)} kB of it V8's heap`;
    return goal(
      `memory of an idle watcher, ${where}`,
      `below ${GOALS.idleBytes / 1000} kB`,
      here,
      rss < GOALS.idleBytes,
    );
  });
  return [
    ...HEAD,
    ...rows,
    "",
    `Memory is what the pet process has more with ${count(watchers)} watchers that are told nothing than before they came, after all garbage has ` +
      "been collected, in a process of its own each time: one that has had them once does not give all of it back.",
    "",
  ];
}

function tables(measured: Measured, { settings, machine }: WatchResults): string[] {
  const { turns } = measured;
  const { watchers } = settings;
  const { alone, watched, isUnmeasurable, allMs } = judged(measured);
  const [each, last] = [eventsOf(turns, "each"), eventsOf(turns, "last")];
  const [before, after] = [writesOf(turns.filter(isAlone)), writesOf(turns.filter(isWatched))];
  const row = (what: string, of: Quantiles) =>
    `| ${what} | ${[50, 90, 99].map((share) => ms(of[share])).join(" | ")} |`;
  const sum = (of: (turn: Turn) => number) => turns.reduce((all, turn) => all + of(turn), 0);
  const told = sum(({ events }) => events?.delivered ?? 0);
  const [missing, ended] = [sum(({ events }) => events?.missing ?? 0), sum(({ events }) => events?.ended ?? 0)];
  const names = Object.keys(turns[0]?.cpu ?? {});
  return [
    ...HEAD,
    goal(
      "p50 of a write",
      "not above what it is without watchers",
      `${ms(watched.median)} ms, without ${ms(alone.median)} (${ms(alone.min)} to ${ms(alone.max)})`,
      isUnmeasurable,
    ),
    goal("an event reaches all, median", `at most ${GOALS.allMs} ms`, `${ms(allMs)} ms`, allMs <= GOALS.allMs),
    "",
    "| ms | p50 | p90 | p99 |",
    "|---|--:|--:|--:|",
    row("a write, without watchers", before),
    row(`a write, with ${count(watchers)}`, after),
    row("an event at a watcher", each),
    row("an event at the last watcher", last),
    "",
    `${count(sum(({ stored }) => stored))} writes were stored and ${count(sum(({ failed }) => failed))} failed; ${count(told)} events were told, ` +
      `${missing === 0 ? "none is missing" : `**${count(missing)} are missing**`}${ended === 0 ? "" : `, and **${count(ended)} streams ended**`}. ` +
      `Each took the pet service ${deliveryMicros(turns).toFixed(1)} µs of processor time beside that of the write.`,
    "",
    "Processor time in % of a core:",
    "",
    `| | ${names.join(" | ")} | others |`,
    `|---|${[...names, ""].map(() => "--:|").join("")}`,
    ...(
      [
        ["without watchers", turns.filter(isAlone)],
        [`with ${count(watchers)}`, turns.filter(isWatched)],
      ] as const
    ).map(([what, some]) => {
      const share = (of: (turn: Turn) => number) => `${count(100 * spread(some.map(of)).median)} %`;
      const cells = [
        ...names.map((name) => share(({ cpu }) => cpu[name] ?? 0)),
        share((turn) => turn.others * machine.cores),
      ];
      return `| ${what} | ${cells.join(" | ")} |`;
    }),
    "",
  ];
}

const ms = (value = Number.NaN): string => (value < 10 ? value.toFixed(1) : count(value));
const kb = (bytes: number): string => (bytes / 1000).toFixed(1);
