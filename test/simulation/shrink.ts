/**
 * Makes a history that fails as small as it gets: fewer days, clients, operations and faults. Without a part, all that
 * happens after it happens in another order, so each smaller history is tried under several seeds.
 */
import type { Run } from "./draw.ts";
import type { Event, History } from "./histories/history.ts";

/** Lets a history happen; its witness is told what happens. */
export type Play = (run: Run, witness: (event: Event) => void) => Promise<readonly string[]>;

/** Seeds for each smaller history. */
const SEEDS = 40;
/** Bounds the time: the same number of tries gives the same result everywhere. */
const MAX_TRIES = 4_000;

/** The smallest run found that breaks what `run` breaks. */
export async function shrink(run: Run, violations: readonly string[], play: Play): Promise<Run> {
  const wanted = new Set(violations.map(sentence));
  let tries = 0;
  let least = run;

  /** Keeps the history if it breaks the same. */
  async function isEnough(history: History, seeds: number): Promise<boolean> {
    for (let i = 0; i < seeds && tries < MAX_TRIES; i++, tries++) {
      const smaller = { ...run, history: { ...history, seed: history.seed + i } };
      if (!(await play(smaller, () => {})).some((violation) => wanted.has(sentence(violation)))) continue;
      least = smaller;
      return true;
    }
    return false;
  }

  /** Of each list of smaller histories takes the first that is enough, until none is. */
  async function exhaust(smaller: (history: History) => Iterable<History>, seeds: number): Promise<void> {
    for (let found = true; found; ) {
      found = false;
      for (const history of smaller(least.history))
        if (await isEnough(history, seeds)) {
          found = true;
          break;
        }
    }
  }

  await exhaust(withLowerRates, SEEDS);
  await exhaust(withFewerOperations, SEEDS);
  await exhaust(withLowerRates, SEEDS);
  const due = await faultsDue(least, play);
  await exhaust((history) => withFewerFaults(history, due), 1);
  return least;
}

/** Two sentences are the same if only their numbers and what they quote differ. */
const sentence = (violation: string): string => violation.replaceAll(/\d+|[{"].*/g, "#");

function* withLowerRates(history: History): Generator<History> {
  if (history.replicas > 1) yield { ...history, replicas: 1 };
  const none = { calls: 0, deaths: 0, slowness: 0, unfairness: 1 };
  for (const [rate, calm] of Object.entries(none))
    if (history.rates[rate as keyof typeof none] !== calm)
      yield { ...history, rates: { ...history.rates, [rate]: calm } };
}

function* withFewerOperations({ days, ...history }: History): Generator<History> {
  for (const fewer of without(days)) yield { ...history, days: fewer };
  for (const [d, clients] of days.entries()) {
    for (const fewer of without(clients)) yield { ...history, days: days.with(d, fewer) };
    for (const [c, program] of clients.entries())
      for (const fewer of without(program)) yield { ...history, days: days.with(d, clients.with(c, fewer)) };
  }
}

/** Without the latter half, the first half, and each one. */
function* without<T>(list: readonly T[]): Generator<readonly T[]> {
  const half = Math.ceil(list.length / 2);
  if (list.length > 2) yield* [list.slice(0, half), list.slice(half)];
  for (const i of list.keys()) if (list.length > 1) yield list.toSpliced(i, 1);
}

function* withFewerFaults({ spared = [], ...history }: History, due: number): Generator<History> {
  const left = Array.from({ length: due }, (_, i) => i).filter((i) => !spared.includes(i));
  for (const fewer of [[], ...without(left)]) {
    const gone = left.filter((i) => !fewer.includes(i));
    if (gone.length > 0) yield { ...history, spared: [...spared, ...gone] };
  }
}

async function faultsDue(run: Run, play: Play): Promise<number> {
  let struck = 0;
  await play(run, ({ is }) => {
    if (is === "struck") struck++;
  });
  return struck;
}
