/** What is let in: as many calls as `limit.ts` finds right, those that matter most before the others. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Clock } from "@petstore/runtime/clock";
import { CALM, MEMORY, nextCalm, nextLimit, START_LIMIT, slowdown, TOLERANCE } from "./limit.ts";
import { type Priority, priorityOf } from "./priority.ts";

/** A limit is looked at anew after so long, and so many calls. */
const WINDOW_MS = 100;
const WINDOW_CALLS = 10;

/** How much of the limit there is for calls of a priority: what is above it is kept for those that go before. */
const ROOM: Record<Priority, number> = { list: 1, read: 1.1, create: 1.25, finish: 1.5 };

/** So many times the room is never under way, however many callers have little. */
const MOST = 2;

/**
 * Where calls are refused all the time, there are never few under way, and what they take then is forgotten or was never
 * known. So from time to time hardly any are let in for a moment (as BBR and Envoy do).
 */
const PROBE_EVERY_MS = 30_000;
const PROBE_MS = 150;

/** Longest that a caller's call counts after he has gone. */
const GOES_ON_MS = 1_000;

/** A call that is under way. */
export interface Admitted {
  readonly kind: Kind;
  readonly startedAt: number;
  /** It began when few were under way. */
  readonly isCalm: boolean;
  /** It was let in to find out whether it is as slow as it was. */
  readonly isTrial: boolean;
}

/**
 * What the time of a call says: what such calls take, where it was answered; that they take as long at least, where it
 * failed or was cut short; or nothing, where it may never have run.
 */
export type Tells = "all" | "at least" | "nothing";

interface Kind {
  calmMs: number;
  calmCalls: number;
  /** Calls whose time would not have been enough. */
  hopeless: number;
  /** The next one that begins is one of these all the same. */
  isTrial: boolean;
}

/** What tells of its end, such as the response to a request. */
export interface Closing {
  /** Its caller has all of it. */
  readonly writableFinished: boolean;
  once(event: "close", listener: () => void): unknown;
}

export interface Admission {
  /**
   * Whether one more call may begin. Where others have taken all room, one may of a caller that holds less than its part:
   * who asks for everything keeps nobody out.
   */
  hasRoom(method: DescMethod, caller?: string): boolean;
  /**
   * Whether there is room for a caller's call, which then counts until its answer closes. Of one who goes away before, it
   * counts for as long as such calls take: what was begun for him goes on.
   */
  letIn(method: DescMethod, caller?: string, response?: Closing): boolean;
  /** No more calls may begin, whoever asks. */
  isFull(method: DescMethod): boolean;
  /** Counts a request of a caller that was let in, until what it gives back is called. */
  hold(caller: string): () => void;
  /** Whether a call can't be answered within the time that is left for it: others wait, and it would need more alone. */
  isHopeless(method: DescMethod, leftMs: number): boolean;
  /** Counts a call from now on, whether there is room for it or not. */
  begin(method: DescMethod): Admitted;
  /** The call has ended. */
  end(call: Admitted, tells: Tells): void;
  underWay(): number;
  /** How many may be under way now, without those that go before others. */
  limit(): number;
}

export function createAdmission({ clock }: { readonly clock: Clock }): Admission {
  const kinds = new WeakMap<DescMethod, Kind>();
  /** Requests of each caller that has any. */
  const held = new Map<string, number>();
  let limit = START_LIMIT;
  let underWay = 0;

  let window = { since: clock(), calls: 0, slowdowns: 0, peak: 0 };
  /** When nothing was under way any more, the last time. */
  let restedAt = clock();
  let calmAt = clock();
  let probeUntil = Number.NEGATIVE_INFINITY;

  function kindOf(method: DescMethod): Kind {
    let kind = kinds.get(method);
    if (!kind) {
      kind = { calmMs: 0, calmCalls: 0, hopeless: 0, isTrial: false };
      kinds.set(method, kind);
    }
    return kind;
  }

  /** There is no room for somebody. */
  function probe(): void {
    const now = clock();
    if (now - calmAt < PROBE_EVERY_MS) return;
    calmAt = now;
    probeUntil = now + PROBE_MS;
  }

  function closeWindow(now: number): void {
    const { calls, slowdowns, peak } = window;
    if (now >= probeUntil) limit = nextLimit(limit, { slowdown: slowdowns / calls, peak });
    window = { since: now, calls: 0, slowdowns: 0, peak: underWay };
  }

  const limitNow = () => (probeUntil > Number.NEGATIVE_INFINITY && clock() < probeUntil ? CALM : limit);

  const roomFor = (method: DescMethod) => limitNow() * ROOM[priorityOf(method)];
  const isFull = (method: DescMethod) => underWay >= MOST * roomFor(method);

  function hasRoom(method: DescMethod, caller?: string): boolean {
    const room = roomFor(method);
    if (underWay < room) return true;
    probe();
    return caller !== undefined && !isFull(method) && (held.get(caller) ?? 0) < room / (held.size + 1);
  }

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
    letIn(method, caller, response) {
      if (!hasRoom(method, caller)) return false;
      // A stream lasts: it would take its caller's part of what is for short calls.
      if (caller === undefined || !response || method.methodKind !== "unary") return true;
      const release = hold(caller);
      response.once("close", () => {
        const goesOnMs = response.writableFinished ? 0 : TOLERANCE * kindOf(method).calmMs;
        if (goesOnMs > 0) setTimeout(release, Math.min(goesOnMs, GOES_ON_MS)).unref();
        else release();
      });
      return true;
    },
    isHopeless(method, leftMs) {
      if (leftMs <= 0) return true;
      const kind = kindOf(method);
      if (underWay < CALM || kind.calmCalls < MEMORY || leftMs >= kind.calmMs) return false;
      // It may be faster than it was: so now and then one is tried. What a caller leaves it says nothing of what it takes.
      kind.isTrial = ++kind.hopeless % MEMORY === 0;
      return !kind.isTrial;
    },
    begin(method) {
      if (underWay === 0 && clock() - restedAt >= WINDOW_MS) limit = Math.max(limit, START_LIMIT);
      underWay++;
      if (underWay > window.peak) window.peak = underWay;
      const kind = kindOf(method);
      const { isTrial } = kind;
      kind.isTrial = false;
      return { kind, startedAt: clock(), isCalm: underWay <= CALM, isTrial };
    },
    end({ kind, startedAt, isCalm, isTrial }, tells) {
      const now = clock();
      if (--underWay === 0) restedAt = now;
      const ms = now - startedAt;
      // Else whoever asks for what fails at once, or leaves his calls no time, would make all others look slow.
      if (tells === "nothing" || (tells === "at least" && ms < kind.calmMs)) return;
      if (isCalm) calmAt = now;
      if (tells === "all" && (isCalm || (isTrial && ms < kind.calmMs)))
        kind.calmMs = nextCalm(kind.calmMs, kind.calmCalls++, ms);
      if (kind.calmCalls === 0) return;
      window.slowdowns += slowdown(ms, kind.calmMs);
      window.calls++;
      if (now - window.since >= WINDOW_MS && window.calls >= WINDOW_CALLS) closeWindow(now);
    },
    underWay: () => underWay,
    limit: limitNow,
  };
}
