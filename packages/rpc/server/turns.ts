/** Shares out the turns of the event loop, so that nobody waits for all that somebody else has asked for. */
import type { Server } from "node:http";

export interface Turns {
  /**
   * Begins a piece of work when it is its turn: soon, but never at once. `caller` is for whom it is done. What waits already
   * is not begun twice. A piece counts as one; one that gives a number counts as that many.
   */
  (caller: unknown, begin: () => unknown): void;
  /** Counts a piece of work that may begin at once. False where others wait, or as much has begun in this turn as may. */
  readonly atOnce?: () => boolean;
}

/**
 * Pieces of work in one turn of the event loop, which reads what has come meanwhile before the next one. With 8 a call cost
 * twice the processor time at 50 callers, for what is begun in one turn is sent on together; with 64 it costs the same as
 * without turns.
 */
export const WORK_PER_TURN = 64;

/** The same where a connection was accepted: the event loop accepts one in each turn, and others may wait behind it. */
export const WORK_PER_TURN_WHILE_OTHERS_CONNECT = 1;

/** Processor time of a turn, in milliseconds, from which on less is begun in the next one. */
export const LONG_TURN_MS = 25;

/** Turns for what the connections of a server ask for. */
export function createServerTurns(server: Server, pace: () => number = createPace()): Turns {
  let connects = false;
  server.on("connection", () => (connects = true));
  return createTurns(setImmediate, () => {
    const paced = pace();
    const most = connects ? WORK_PER_TURN_WHILE_OTHERS_CONNECT : paced;
    connects = false;
    return most;
  });
}

/**
 * How much to begin in each turn: half as much after a long one, twice as much after any other. What a piece costs can't be
 * told when it is begun: a page of large records costs a hundred times what a small one does. The processor time is that
 * of this thread, so a machine that is busy with something else does not count.
 */
export function createPace(spentMs: () => number = threadMs): () => number {
  let most = WORK_PER_TURN;
  let before = spentMs();
  return () => {
    const now = spentMs();
    most = now - before > LONG_TURN_MS ? Math.max(1, most / 2) : Math.min(WORK_PER_TURN, most * 2);
    before = now;
    return most;
  };
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Callers take turns; what one caller asks for is begun in its order. */
export function createTurns(
  nextTurn: (turn: () => void) => void = setImmediate,
  workPerTurn: () => number = createPace(),
): Turns {
  // Both keep their order, and lose their first at no cost, however long they are.
  const waiting = new Map<unknown, Set<() => unknown>>();
  let isDue = false;
  const schedule = () => {
    if (isDue || waiting.size === 0) return;
    isDue = true;
    nextTurn(turn);
  };
  const turn = () => {
    let left = workPerTurn();
    try {
      // What is asked for meanwhile comes last, in this turn if there is room.
      for (const [caller, pieces] of waiting) {
        if (left <= 0) break;
        waiting.delete(caller);
        const [begin] = pieces;
        if (!begin) continue;
        pieces.delete(begin);
        if (pieces.size > 0) waiting.set(caller, pieces);
        const work = begin();
        left -= typeof work === "number" ? work : 1;
      }
    } finally {
      isDue = false;
      schedule();
    }
  };
  let room: number | undefined;
  const nextRoom = () => {
    room = undefined;
  };
  const atOnce = () => {
    if (waiting.size > 0) return false;
    if (room === undefined) {
      room = workPerTurn();
      nextTurn(nextRoom);
    }
    return --room >= 0;
  };
  const inTurn = (caller: unknown, begin: () => unknown) => {
    const pieces = waiting.get(caller) ?? new Set();
    pieces.add(begin);
    waiting.set(caller, pieces);
    schedule();
  };
  return Object.assign(inTurn, { atOnce });
}
