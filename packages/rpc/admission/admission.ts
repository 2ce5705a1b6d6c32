/**
 * Admission control: lets in as many calls as the adaptive limit of `limit.ts` allows, in order of priority, so that a service
 * gets no more than it can finish.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import type { Clock, Runtime } from "@petstore/runtime/clock";
import { notMade, stillRunning } from "../client/failed-call.ts";
import { type ErrorCatalogue, NOT_BEGUN } from "../errors.ts";
import {
  FEW_CALLS,
  MEMORY,
  nextBaseline,
  nextLimit,
  type Priority,
  priorityOf,
  START_LIMIT,
  slowdown,
  TOLERANCE,
} from "./limit.ts";

/** The limit is adjusted after at least this time and at least this many calls. */
const WINDOW_MS = 100;
const WINDOW_CALLS = 10;

/** The room for calls of a priority, as a multiple of the limit. The difference is reserved for higher priorities. */
const ROOM: Record<Priority, number> = { list: 1, read: 1.1, create: 1.25, finish: 1.5 };

/** Never more than this multiple of the room is under way, however many callers have less than their share. */
const MOST = 2;

/**
 * While calls are refused all the time, there are never few under way, so the delay without load can't be measured. So from
 * time to time hardly any calls are let in for a moment (as BBR and Envoy do).
 */
const PROBE_EVERY_MS = 30_000;
const PROBE_MS = 150;

/** Longest time that a call counts after its caller has gone. */
const GOES_ON_MS = 1_000;

interface ActiveCall {
  readonly stats: MethodStats;
  readonly startedAt: number;
  /** It began when few calls were under way. */
  readonly isBaseline: boolean;
  /** It was let in to find out whether such calls are still as slow as before. */
  readonly isTrial: boolean;
}

/**
 * What the duration of a call shows: how long such calls take ("all"), if it was answered; a lower bound ("at least"), if it
 * failed or was cut short; or nothing, if it may never have run.
 */
export type Evidence = "all" | "at least" | "nothing";

interface MethodStats {
  baselineMs: number;
  baselineCalls: number;
  /** Calls that had too little time left. */
  tooLate: number;
  /** The next call that begins is one of these, let in as a trial. */
  isTrial: boolean;
}

/** An object that reports its end, such as the response to a request. */
export interface Closing {
  /** The whole answer was given to it, so the call is over. (`writableFinished` is also true of an HTTP/2 stream that was reset.) */
  readonly writableEnded: boolean;
  once(event: "close", listener: () => void): unknown;
}

export type Admission = ReturnType<typeof createAdmission>;

export function createAdmission({ clock }: { readonly clock: Clock }) {
  const statsByMethod = new WeakMap<DescMethod, MethodStats>();
  /** Requests of each caller that has any. */
  const held = new Map<string, number>();
  let limit = START_LIMIT;
  let underWay = 0;

  let window = { since: clock(), calls: 0, slowdowns: 0, peak: 0 };
  /** When the last call under way ended. */
  let restedAt = clock();
  let baselineAt = clock();
  let probeUntil = Number.NEGATIVE_INFINITY;

  function statsOf(method: DescMethod): MethodStats {
    let stats = statsByMethod.get(method);
    if (!stats) {
      stats = { baselineMs: 0, baselineCalls: 0, tooLate: 0, isTrial: false };
      statsByMethod.set(method, stats);
    }
    return stats;
  }

  /** Called when there is no room for a call. Begins a probe if none was measured with few under way for `PROBE_EVERY_MS`. */
  function probe(): void {
    const now = clock();
    if (now - baselineAt < PROBE_EVERY_MS) return;
    baselineAt = now;
    probeUntil = now + PROBE_MS;
  }

  function closeWindow(now: number): void {
    const { calls, slowdowns, peak } = window;
    if (now >= probeUntil) limit = nextLimit(limit, { slowdown: slowdowns / calls, peak });
    window = { since: now, calls: 0, slowdowns: 0, peak: underWay };
  }

  /** How many calls may be under way now, not counting the extra room of higher priorities. */
  const limitNow = () => (probeUntil > Number.NEGATIVE_INFINITY && clock() < probeUntil ? FEW_CALLS : limit);

  const roomFor = (method: DescMethod) => limitNow() * ROOM[priorityOf(method)];
  /** Whether no more calls may begin, for any caller. */
  const isFull = (method: DescMethod) => underWay >= MOST * roomFor(method);

  /**
   * Whether one more call may begin. If there is no room left, a caller that holds less than its share may still begin one, so
   * that no caller can keep others out.
   */
  function hasRoom(method: DescMethod, caller?: string): boolean {
    const room = roomFor(method);
    if (underWay < room) return true;
    probe();
    return caller !== undefined && !isFull(method) && (held.get(caller) ?? 0) < room / (held.size + 1);
  }

  /** Counts a request of a caller that was let in. Returns a function that stops counting it. */
  function hold(caller: string): () => void {
    held.set(caller, (held.get(caller) ?? 0) + 1);
    return () => {
      const left = (held.get(caller) ?? 0) - 1;
      if (left > 0) held.set(caller, left);
      else held.delete(caller);
    };
  }

  return {
    isFull,
    hasRoom,
    hold,
    /**
     * Whether there is room for a caller's call. If so, the call counts as the caller's until its response closes. If the caller
     * goes away before, it counts for about as long as such calls take, at most 1 s, because its work goes on.
     */
    letIn(method: DescMethod, caller?: string, response?: Closing): boolean {
      if (!hasRoom(method, caller)) return false;
      // A stream lasts: it would use up its caller's share of the room for short calls.
      if (caller === undefined || !response || method.methodKind !== "unary") return true;
      const release = hold(caller);
      response.once("close", () => {
        const goesOnMs = response.writableEnded ? 0 : TOLERANCE * statsOf(method).baselineMs;
        if (goesOnMs > 0) setTimeout(release, Math.min(goesOnMs, GOES_ON_MS)).unref();
        else release();
      });
      return true;
    },
    /** Whether a call can't be answered in the time left: others are under way, and it would need more even without them. */
    isTooLate(method: DescMethod, leftMs: number): boolean {
      if (leftMs <= 0) return true;
      const stats = statsOf(method);
      if (underWay < FEW_CALLS || stats.baselineCalls < MEMORY || leftMs >= stats.baselineMs) return false;
      // Such calls may have become faster, so now and then one is tried, whatever time its caller has left.
      stats.isTrial = ++stats.tooLate % MEMORY === 0;
      return !stats.isTrial;
    },
    /** Counts a call from now on, whether there is room for it or not. */
    begin(method: DescMethod): ActiveCall {
      if (underWay === 0 && clock() - restedAt >= WINDOW_MS) limit = Math.max(limit, START_LIMIT);
      underWay++;
      if (underWay > window.peak) window.peak = underWay;
      const stats = statsOf(method);
      const { isTrial } = stats;
      stats.isTrial = false;
      return { stats, startedAt: clock(), isBaseline: underWay <= FEW_CALLS, isTrial };
    },
    end({ stats, startedAt, isBaseline, isTrial }: ActiveCall, evidence: Evidence): void {
      const now = clock();
      if (--underWay === 0) restedAt = now;
      const ms = now - startedAt;
      // Otherwise a caller whose calls fail at once, or have hardly any time, would distort what is measured.
      if (evidence === "nothing" || (evidence === "at least" && ms < stats.baselineMs)) return;
      if (isBaseline) baselineAt = now;
      if (evidence === "all" && (isBaseline || (isTrial && ms < stats.baselineMs)))
        stats.baselineMs = nextBaseline(stats.baselineMs, stats.baselineCalls++, ms);
      if (stats.baselineCalls === 0) return;
      window.slowdowns += slowdown(ms, stats.baselineMs);
      window.calls++;
      if (now - window.since >= WINDOW_MS && window.calls >= WINDOW_CALLS) closeWindow(now);
    },
    underWay: () => underWay,
    limit: limitNow,
  };
}

export const NO_ROOM = "There is more to do than can be done in time. Nothing was done. Try again in a second.";

/** A call with one of these codes may have ended at once, however busy the service is. */
const noEvidence: readonly Code[] = [Code.Unavailable, Code.Canceled];

/** How long a call counts after its caller has given it up, at most: one hanging replica must not use up all the room. */
const RUNS_ON_MS = 1_000;

/**
 * Counts and measures the unary calls of a transport until the service is done with them. Beyond the limit a call fails with
 * OVERLOADED, and one that can't be answered in time with DEADLINE_EXCEEDED: neither is sent. Streams are not counted, for
 * their duration says nothing of load.
 */
export const withAdmission = (next: Transport, admission: Admission, errors: ErrorCatalogue): Transport => ({
  ...next,
  async unary(method, signal, timeoutMs, headers, input, contextValues) {
    // The request was let in when its headers arrived; its message may have taken long.
    if (admission.isFull(method)) throw notMade(errors, "OVERLOADED", NO_ROOM);
    if (timeoutMs !== undefined && admission.isTooLate(method, timeoutMs))
      throw notMade(errors, "DEADLINE_EXCEEDED", NOT_BEGUN);
    const call = admission.begin(method);
    try {
      const answer = await next.unary(method, signal, timeoutMs, headers, input, contextValues);
      admission.end(call, "all");
      return answer;
    } catch (error) {
      const over = stillRunning(error);
      if (over) endLater(admission, call, over);
      else admission.end(call, noEvidence.includes(ConnectError.from(error).code) ? "nothing" : "at least");
      throw error;
    }
  },
});

/** Otherwise a caller that gives up its calls could make a service do any amount of work. */
function endLater(admission: Admission, call: ActiveCall, over: Promise<boolean>): void {
  let hasEnded = false;
  const end = (evidence: Evidence) => {
    if (!hasEnded) admission.end(call, evidence);
    hasEnded = true;
    clearTimeout(late);
  };
  const late = setTimeout(end, RUNS_ON_MS, "at least").unref();
  void over.then((isAnswered) => end(isAnswered ? "at least" : "nothing"));
}

const LOG_EVERY_MS = 1_000;

/**
 * Returns a function that counts a refused call. It logs the first at once, and later ones together, once a second at most: a
 * line for each would cost more than the refusal.
 */
export function createShedLog({ clock, log }: Pick<Runtime, "clock" | "log">): (method: DescMethod) => void {
  let refused: Partial<Record<Priority, number>> = {};
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (method) => {
    const priority = priorityOf(method);
    refused[priority] = (refused[priority] ?? 0) + 1;
    const now = clock();
    if (now - loggedAt < LOG_EVERY_MS) return;
    log.warn({ refused }, "overloaded: calls were refused");
    loggedAt = now;
    refused = {};
  };
}
