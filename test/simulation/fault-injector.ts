/** What may go wrong, and who decides it. */

import type { ServiceName } from "../../config.ts";
import { seededRandom } from "../../packages/runtime/fixtures/random.ts";

/**
 * What becomes of a call: it arrives once; or twice, now and later; not at all; only later, when its caller has given up;
 * or it arrives and its answer does not.
 */
export type Delivery = "once" | "twice" | "lost" | "late" | "unanswered";

/** A call on its way. */
export interface Sent {
  readonly from: ServiceName | "client";
  /** Whoever sends it may send it again. */
  readonly replayable: boolean;
}

export interface FaultInjector {
  /** Which of so many goes on. */
  pick(waiting: number): number;
  /** Whether the process dies now, before it does what the label says. */
  dies(service: ServiceName, label: string): boolean;
  deliver(call: Sent): Delivery;
  /** How much later it arrives what arrives late, in milliseconds. */
  lateness(): number;
  /** How many turns an access to a disk, or its answer, is on its way. */
  delay(): number;
  random(): number;
}

/** Nothing goes wrong, and everybody goes on in the order in which they came. */
export const noFaults: FaultInjector = {
  pick: () => 0,
  dies: () => false,
  deliver: () => "once",
  lateness: () => 0,
  delay: () => 0,
  random: () => 0.5,
};

/** One call of all, the `nth` from 0, arrives only `lateMs` later, and whoever sent it dies; `sent` counts the calls. */
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

export interface FaultRates {
  /** How probable it is that a call fares badly. */
  readonly calls: number;
  /** How probable it is that a process dies at a step. */
  readonly deaths: number;
  /** 1: everybody has the same chance to go on. Above, who came last does, and others may sleep through all that they do. */
  readonly unfairness: number;
  /** Half of the accesses to a disk, and of their answers, take twice so many turns or more; one in a hundred a hundred times. */
  readonly slowness: number;
}

/** Everybody goes on in any order, calls fare badly and processes die. */
export function randomFaults(
  seed: number,
  { calls, deaths, unfairness, slowness }: FaultRates,
  count: (what: string) => void,
): FaultInjector {
  const roll = seededRandom(seed);
  return {
    random: roll,
    pick: (waiting) => waiting - 1 - Math.floor(roll() ** unfairness * waiting),
    dies() {
      const dies = roll() < deaths;
      if (dies) count("crash");
      return dies;
    },
    lateness: () => Math.floor(roll() ** 2 * MAX_DELAY_MS),
    delay: () => Math.min(Math.floor(slowness / roll()), MAX_TURNS),
    deliver({ replayable }) {
      if (roll() >= calls) return "once";
      const fates = ["lost", "late", "unanswered", ...(replayable ? (["twice"] as const) : [])] as const;
      const fate = fates[Math.floor(roll() * fates.length)] ?? "lost";
      count(fate);
      return fate;
    },
  };
}
