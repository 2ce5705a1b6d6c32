/** Gateways beside grpc-gateway, as tables. */
import { spread } from "../compare/results.ts";
import { calls } from "./calls.ts";
import { REFERENCE } from "./gateways.ts";
import type { Results, Sample } from "./measure.ts";

/** Requests for each second of the gateway's processor time, compared with grpc-gateway's; and the most memory. */
export const GOAL = { ratio: 0.8, bytes: 100 * 1024 * 1024 };

export function gatewaysReport({ at, machine, settings, gateways, samples }: Results): string {
  const { cpu, cores, node, generator } = machine;
  const busy = spread(samples.map((sample) => 100 * sample.busy));
  const lines = [
    `${at.slice(0, 10)}: ${cpu}, ${cores} cores, Node ${node}, ${generator}; ${settings.rounds} rounds, ${settings.seconds} s each; ` +
      `the machine was busy for ${busy.median.toFixed(0)} % of the time (${busy.min.toFixed(0)} to ${busy.max.toFixed(0)}). ` +
      "Medians; in brackets the lowest and the highest round.",
    "",
    "| | processor time of the gateway for a request, µs | requests for its processor time, compared with grpc-gateway | requests/s | p50, ms |",
    "|---|--:|--:|--:|--:|",
  ];
  for (const call of calls.filter(({ name }) => samples.some((sample) => sample.call === name)))
    for (const { name, title } of gateways) {
      const own = samples.filter((sample) => sample.call === call.name && sample.gateway === name);
      if (own.length === 0) continue;
      const times = name === REFERENCE ? "" : shown(ratios(samples, call.name, name), 2);
      const of = (pick: (sample: Sample) => number) => spread(own.map(pick)).median;
      const perSecond = of(({ answered }) => answered.requests / answered.seconds);
      lines.push(
        `| ${call.title}: ${title} | ${shown(
          own.map(({ cpu }) => cpu),
          0,
        )} | ${times} | ${perSecond.toFixed(0)} | ${of(({ answered }) => answered.p50).toFixed(1)} |`,
      );
    }
  lines.push("", "| | memory at rest, MiB | most under load |", "|---|--:|--:|");
  for (const { name, title, restingBytes } of gateways) {
    const most = Math.max(...samples.filter(({ gateway }) => gateway === name).map(({ resident }) => resident));
    lines.push(`| ${title} | ${mib(restingBytes)} | ${mib(most)} |`);
  }
  return `${lines.join("\n")}\n`;
}

/** Round by round: how many requests a gateway answers in the processor time in which grpc-gateway answers one. */
export function ratios(samples: readonly Sample[], call: string, gateway: string): number[] {
  const costOf = (name: string, round: number) =>
    samples.find((sample) => sample.round === round && sample.call === call && sample.gateway === name)?.cpu;
  return samples
    .filter((sample) => sample.call === call && sample.gateway === gateway)
    .map(({ round, cpu }) => (costOf(REFERENCE, round) ?? Number.NaN) / cpu);
}

const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(0);

function shown(values: readonly number[], digits: number): string {
  const { median, min, max } = spread(values);
  return `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`;
}
