/** The possible faults, and the interface that decides when they happen. */

import { seededRandom } from "@petstore/runtime/clock";
import type { ServiceName } from "../../processes/names.ts";

/**
 * What happens to a call: it arrives once; or twice, now and later; not at all; only later, after its caller has given up; or
 * it arrives and its answer does not.
 */
export type Delivery = "once" | "twice" | "lost" | "late" | "unanswered";

/** A call on its way. */
export interface Sent {
  readonly from: ServiceName | "client";
  readonly to: ServiceName;
  readonly rpc: string;
  /** Whether its sender may send it again. */
  readonly replayable: boolean;
}

export interface FaultInjector {
  /** Which of the waiting tasks continues, from 0. */
  pick(waiting: number): number;
  /** Whether the process dies now, before it does what the label says. */
  dies(service: ServiceName, label: string): boolean;
  deliver(call: Sent): Delivery;
  /** How much later a late call arrives, in milliseconds. */
  lateness(): number;
  /** How many turns a disk access, or its answer, takes. */
  delay(): number;
  /** How many ids a process takes ahead when it needs one. */
  ahead(): number;
  random(): number;
}

/** No faults; tasks continue in the order in which they came. */
export const noFaults: FaultInjector = {
  pick: () => 0,
  dies: () => false,
  deliver: () => "once",
  lateness: () => 0,
  delay: () => 0,
  ahead: () => 0,
  random: () => 0.5,
};

/** Delays one call, the `nth` from 0, by `lateMs`, and kills its sender. `sent` counts the calls. */
export function oneLateCall(nth: number, lateMs: number, kill: (service: ServiceName) => void) {
  let sent = 0;
  const faults: FaultInjector = {
    ...noFaults,
    lateness: () => lateMs,
    deliver({ from }) {
      if (sent++ !== nth) return "once";
      if (from !== "client") kill(from);
      return "late";
    },
  };
  return { faults, sent: () => sent };
}

const MAX_DELAY_MS = 20_000;
const MAX_TURNS = 200;
const MAX_AHEAD = 4;

export interface FaultRates {
  /** The probability that a call is not delivered normally. */
  readonly calls: number;
  /** The probability that a process dies at a step. */
  readonly deaths: number;
  /** With 1 all waiting tasks have the same chance. Above, later ones are preferred, and early ones may wait for very long. */
  readonly unfairness: number;
  /**
   * Half of the disk accesses and of their answers take at least twice as many turns; one in a hundred takes a hundred times
   * as many.
   */
  readonly slowness: number;
}

/** Every kind of fault that strikes somewhere. */
export const faultKinds = ["crash", "stop", "lost", "late", "unanswered", "twice"] as const;
export type Fault = (typeof faultKinds)[number];

/** Called for each fault that is due, with the place; whether it strikes. */
export type Strikes = (fault: Fault, where: string) => boolean;

/** Tasks continue in random order, calls are not delivered normally, and processes die. */
export function randomFaults(
  seed: number,
  { calls, deaths, unfairness, slowness }: FaultRates,
  strikes: Strikes,
): FaultInjector {
  const roll = seededRandom(seed);
  return {
    random: roll,
    pick: (waiting) => waiting - 1 - Math.floor(roll() ** unfairness * waiting),
    dies: (service, label) => roll() < deaths && strikes("crash", `${service}, at "${label}"`),
    lateness: () => Math.floor(roll() ** 2 * MAX_DELAY_MS),
    ahead: () => Math.floor(roll() * MAX_AHEAD),
    delay: () => Math.min(Math.floor(slowness / roll()), MAX_TURNS),
    deliver({ from, to, rpc, replayable }) {
      if (roll() >= calls) return "once";
      const fates = ["lost", "late", "unanswered", ...(replayable ? (["twice"] as const) : [])] as const;
      const fate = fates[Math.floor(roll() * fates.length)] ?? "lost";
      return strikes(fate, `${rpc}, from ${from} to ${to}`) ? fate : "once";
    },
  };
}
