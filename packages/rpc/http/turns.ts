/** Shares out the turns of the event loop, so that no caller waits for everything that another has asked for. */

/**
 * Begins a piece of work for `caller` when its turn comes: soon, but never synchronously. A piece that already waits is not
 * queued again. A piece counts as one, or as the number that it returns.
 */
export type Turns = (caller: unknown, begin: () => unknown) => void;

/** Turns for work that may also begin at once, if there is room. */
export type TurnsAtOnce = Turns & {
  /** Counts a piece of work that may begin at once. Returns false if others wait, or if this turn has no room left. */
  readonly atOnce: () => boolean;
};

/**
 * Pieces of work in one turn of the event loop; before the next turn it reads what has arrived. With 8 a call cost twice the
 * CPU time at 50 callers, for calls that begin in one turn are sent on together. With 32 it costs the same as without turns,
 * and the service that the calls are sent to works on the first while the others begin.
 */
export const WORK_PER_TURN = 32;

/**
 * Of these, pieces that begin together. What follows from them at once is done before the next ones begin. So work that node
 * announces only then is counted, and what the pieces have cost is known.
 */
export const WORK_TOGETHER = 8;

/**
 * The event loop accepts one connection in each turn, and others may wait behind it. While connections keep coming, one
 * piece begins in one of this many turns.
 */
export const TURNS_WHILE_OTHERS_CONNECT = 8;

/** CPU time of a turn, in milliseconds, after which nothing more begins in it, and less in the next one. */
export const LONG_TURN_MS = 25;

/** How much may begin in a turn of the event loop. */
export interface Pace {
  /** Begins a turn. Returns how many pieces it has room for. */
  begin(): number;
  /** Whether the turn has taken so long that nothing more may begin in it. */
  isOver(): boolean;
}

export type ServerTurns = TurnsAtOnce & {
  /** Must be called for every accepted connection. */
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
 * How much to begin in each turn, from 1 to `WORK_PER_TURN`: half as much after a long turn, twice as much after any other.
 * The cost of a piece is not known when it begins: a page of large records costs a hundred times as much as a small one. The
 * CPU time is that of this thread, so a machine that is busy with something else does not count.
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

/** Calls `begin` when the queues of promises and of `nextTick` have run, before the event loop goes on. */
const afterAllThatFollows = (begin: () => void): void => queueMicrotask(() => process.nextTick(begin));

/** Callers take turns. The work of one caller begins in the order in which it was asked for. */
export function createTurns(
  nextTurn: (turn: () => void) => void = setImmediate,
  pace: Pace = createPace(),
  afterwards: (begin: () => void) => void = afterAllThatFollows,
): TurnsAtOnce {
  // A Map and a Set keep their order, and removing the first entry costs the same however many there are.
  let waiting = new Map<unknown, Set<() => unknown>>();
  let pieces = 0;
  /** Of these, pieces that were asked for by what followed from this turn's work: the turn does not go on for them alone. */
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
      // Pieces that are asked for meanwhile come last, in this turn if there is room.
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
