/** Shares out the turns of the event loop, so that nobody waits for all that somebody else has asked for. */

/**
 * Begins a piece of work when it is its turn: soon, but never at once. `caller` is for whom it is done. What waits already
 * is not begun twice. A piece counts as one; one that gives a number counts as that many.
 */
export type Turns = (caller: unknown, begin: () => unknown) => void;

/** Turns that need not always be waited for. */
export type TurnsAtOnce = Turns & {
  /** Counts a piece of work that may begin at once. False where others wait, or as much has begun in this turn as may. */
  readonly atOnce: () => boolean;
};

/**
 * Pieces of work in one turn of the event loop, which reads what has come meanwhile before the next one. With 8 a call cost
 * twice the processor time at 50 callers, for what is begun in one turn is sent on together; with 32 it costs the same as
 * without turns, and whom the calls are sent to works on the first while the others are begun.
 */
export const WORK_PER_TURN = 32;

/**
 * Of these, pieces that are begun together. What follows from them at once is done before the next ones, so that is counted
 * which node announces only then, and what it has cost is known.
 */
export const WORK_TOGETHER = 8;

/**
 * The event loop accepts one connection in each turn, and others may wait behind it. While they do, one piece is begun in
 * one of so many turns.
 */
export const TURNS_WHILE_OTHERS_CONNECT = 8;

/** Processor time of a turn, in milliseconds, from which on nothing more is begun in it, and less in the next one. */
export const LONG_TURN_MS = 25;

/** How much is begun in a turn of the event loop. */
export interface Pace {
  /** Begins a turn. Gives how much there is room for. */
  begin(): number;
  /** The turn has taken so long that nothing more is to begin in it. */
  isOver(): boolean;
}

export type ServerTurns = TurnsAtOnce & {
  /** To be called for every connection that is accepted. */
  readonly accepted: () => void;
};

/** Turns for what the connections of a server ask for. */
export function createServerTurns(pace: Pace = createPace()): ServerTurns {
  let connects = false;
  let accepting = 0;
  const turns = createTurns(setImmediate, {
    ...pace,
    begin() {
      const paced = pace.begin();
      if (!connects) return paced;
      connects = false;
      accepting = (accepting + 1) % TURNS_WHILE_OTHERS_CONNECT;
      return accepting === 0 ? 1 : 0;
    },
  });
  const accepted = () => {
    connects = true;
  };
  return Object.assign(turns, { accepted });
}

/**
 * How much to begin in each turn: half as much after a long one, twice as much after any other. What a piece costs can't be
 * told when it is begun: a page of large records costs a hundred times what a small one does. The processor time is that
 * of this thread, so a machine that is busy with something else does not count.
 */
export function createPace(spentMs: () => number = threadMs): Pace {
  let most = WORK_PER_TURN;
  let before = spentMs();
  return {
    begin() {
      const now = spentMs();
      most = now - before > LONG_TURN_MS ? Math.max(1, most / 2) : Math.min(WORK_PER_TURN, most * 2);
      before = now;
      return most;
    },
    isOver: () => spentMs() - before > LONG_TURN_MS,
  };
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** When all is done that has been asked for by promises and by `nextTick`, before the event loop goes on. */
const afterAllThatFollows = (begin: () => void): void => queueMicrotask(() => process.nextTick(begin));

/** Callers take turns; what one caller asks for is begun in its order. */
export function createTurns(
  nextTurn: (turn: () => void) => void = setImmediate,
  pace: Pace = createPace(),
  afterwards: (begin: () => void) => void = afterAllThatFollows,
): TurnsAtOnce {
  // Both keep their order, and lose their first at no cost, however long they are.
  let waiting = new Map<unknown, Set<() => unknown>>();
  let pieces = 0;
  /** Of these, those that were asked for by what follows from others of this turn: nothing is begun for them alone. */
  let newcomers = 0;
  let isBetween = false;
  let isDue = false;
  const schedule = () => {
    if (isDue || waiting.size === 0) return;
    isDue = true;
    newcomers = 0;
    nextTurn(() => some(pace.begin()));
  };
  const some = (most: number) => {
    isBetween = false;
    let left = most;
    try {
      // What is asked for meanwhile comes last, in this turn if there is room.
      for (const [caller, own] of waiting) {
        if (left <= 0 || most - left >= WORK_TOGETHER) break;
        waiting.delete(caller);
        const [begin] = own;
        if (!begin) continue;
        own.delete(begin);
        pieces--;
        if (own.size > 0) waiting.set(caller, own);
        const work = begin();
        left -= typeof work === "number" ? work : 1;
      }
    } finally {
      if (left <= 0 || pieces === 0) end();
      else {
        isBetween = true;
        afterwards(() => (pace.isOver() || pieces <= newcomers ? end() : some(left)));
      }
    }
  };
  const end = () => {
    isBetween = isDue = false;
    if (waiting.size === 0) waiting = new Map(); // see `InFlight`
    schedule();
  };
  let room: number | undefined;
  const nextRoom = () => {
    room = undefined;
  };
  const atOnce = () => {
    if (waiting.size > 0) return false;
    if (room === undefined) {
      room = pace.begin();
      nextTurn(nextRoom);
    } else if (room % WORK_TOGETHER === 0 && pace.isOver()) room = 0;
    return --room >= 0;
  };
  const inTurn = (caller: unknown, begin: () => unknown) => {
    const own = waiting.get(caller) ?? new Set();
    if (own.has(begin)) return;
    own.add(begin);
    pieces++;
    if (isBetween) newcomers++;
    waiting.set(caller, own);
    schedule();
  };
  return Object.assign(inTurn, { atOnce });
}
