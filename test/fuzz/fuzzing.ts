/** A fuzz run: takes slices of cases for each target in turn, and saves the smallest case that shows each find. */
import fc from "fast-check";
import { saveCase } from "./corpus.ts";
import { Find } from "./find.ts";
import { type Subject, startSubject } from "./subject.ts";
import type { Target } from "./target.ts";
import { createTrials, type Trials } from "./trial.ts";

export interface Finding {
  readonly target: string;
  readonly find: Find;
  /** The file of the case; undefined if no single case reproduces the find. */
  readonly path: string | undefined;
}

export interface RunOptions {
  readonly targets: readonly Target<unknown>[];
  /** The same seed gives the same cases in the same order. */
  readonly seed: number;
  /** Whether everything is sent over TLS. */
  readonly tls: boolean;
  /** No new slice begins when this returns true. */
  readonly isOver: () => boolean;
  readonly onCase: (target: string) => void;
  readonly onFinding: (finding: Finding) => void;
}

const CASES_PER_SLICE = 100;
/** Slices before the petstore is replaced by one with an empty store, which also tests that it stops in order. */
const SLICES_PER_SUBJECT = 60;
/** How many of the last cases are tried again when an effect was noticed late. */
const TAIL = 20;
/** The most finds of one target: further ones are the same in other words. */
const MAX_FINDS = 20;
const SHRINK_MS = 60_000;
/** Connections and files that may stay open beyond those at the start. */
const SPARE_FILES = 20;
/** The heap is limited; code, buffers and what the store has mapped may take some hundred megabytes more. */
const MAX_MEMORY = 640 * 1024 * 1024;

export async function fuzz({ targets, seed, tls, isOver, onCase, onFinding }: RunOptions): Promise<void> {
  const known = new Set<string>();
  const isNew = (target: string, { problem }: Find) =>
    !known.has(`${target} ${problem}`) && [...known].filter((one) => one.startsWith(`${target} `)).length < MAX_FINDS;
  const report = (target: string, find: Find, path?: string) => {
    if (!isNew(target, find)) return;
    known.add(`${target} ${find.problem}`);
    onFinding({ target, find, path });
  };

  for (let slice = 0; !isOver(); ) {
    await using subject = targets.some((target) => "send" in target) ? await startSubject({ tls }) : undefined;
    const trials = createTrials(subject);
    const atStart = subject?.open();
    for (let i = 0; i < SLICES_PER_SUBJECT && !isOver(); i++, slice++) {
      const target = targets[slice % targets.length] as Target<unknown>;
      const cases = fc.sample(target.cases, { seed: seed + slice, numRuns: CASES_PER_SLICE });
      for (const [index, one] of cases.entries()) {
        const find = await trials.try(target, asInFile(one));
        onCase(target.name);
        if (find && isNew(target.name, find)) {
          const { least, shown } = await smallest(trials, target, { cases, seed: seed + slice, index }, find);
          report(target.name, shown, least === undefined ? undefined : saveCase(target.name, shown.problem, least));
        }
        if (isOver()) break;
      }
      if (subject && atStart) await expectRest(subject, atStart).catch((error) => report(target.name, error));
    }
  }
}

const asInFile = (one: unknown): unknown => JSON.parse(JSON.stringify(one));

interface Place {
  readonly cases: readonly unknown[];
  /** The seed of the cases. */
  readonly seed: number;
  /** The index of the case after which something was noticed. */
  readonly index: number;
}

/** Finds the smallest case for a find. `least` is undefined if none of the last cases reproduces it on its own. */
async function smallest(trials: Trials, target: Target<unknown>, { cases, seed, index }: Place, find: Find) {
  for (let suspect = index; suspect >= Math.max(0, index - TAIL); suspect--) {
    const again = await trials.repeat(target, asInFile(cases[suspect]), find.problem);
    if (!again) continue;
    let [least, shown] = [asInFile(cases[suspect]), again];
    const isGone = async (one: unknown) => {
      const found = await trials.again(target, asInFile(one));
      if (found?.problem !== find.problem) return true;
      [least, shown] = [asInFile(one), found];
      return false;
    };
    // The same seed and path draw the same case; only a case drawn like this can be shrunk.
    await fc.check(fc.asyncProperty(target.cases, isGone), {
      seed,
      path: `${suspect}`,
      numRuns: 1,
      interruptAfterTimeLimit: SHRINK_MS,
    });
    return { least, shown };
  }
  return { least: undefined, shown: find };
}

/** Checks that resources are freed: all connections of cases are closed, so what they used must be free after a while. */
async function expectRest(subject: Subject, atStart: ReadonlyMap<string, number>): Promise<void> {
  const tooMany = () =>
    [...(subject.open() ?? [])].find(([name, count]) => count > (atStart.get(name) ?? 0) + SPARE_FILES);
  for (let asked = 0; tooMany() && asked < 1000; asked++) await subject.neighbour.ask("gateway");
  const memory = subject.memory() ?? 0;
  if (memory > MAX_MEMORY) throw new Find("a process takes ever more memory", `${Math.round(memory / 1e6)} MB`);
  const [name, count] = tooMany() ?? [];
  if (name !== undefined)
    throw new Find(`${name} keeps connections open`, `${count}, ${atStart.get(name as never)} at the start`);
}
