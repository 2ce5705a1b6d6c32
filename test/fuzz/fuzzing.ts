/** A run: slices of cases for each target in turn, and for each find the smallest case that shows it, written down. */
import fc from "fast-check";
import { saveCase } from "./corpus.ts";
import { Find } from "./find.ts";
import { type Subject, startSubject } from "./subject.ts";
import type { Target } from "./target.ts";
import { createTrials, type Trials } from "./trial.ts";

export interface Finding {
  readonly target: string;
  readonly find: Find;
  /** Where the case is written down; undefined for what no single case shows again. */
  readonly path: string | undefined;
}

export interface RunOptions {
  readonly targets: readonly Target<unknown>[];
  /** The same seed gives the same cases in the same order. */
  readonly seed: number;
  /** Whether all that is sent goes over TLS. */
  readonly tls: boolean;
  /** No slice is begun when it says so. */
  readonly isOver: () => boolean;
  readonly onCase: (target: string) => void;
  readonly onFinding: (finding: Finding) => void;
}

const CASES_PER_SLICE = 100;
/** Slices of one petstore: it starts with an empty store again, and ends in good order or does not. */
const SLICES_PER_SUBJECT = 60;
/** Cases that are looked through when what one did was seen later. */
const TAIL = 20;
/** Of one target: what comes after so many is the same again, in other words. */
const MAX_FINDS = 20;
const SHRINK_MS = 60_000;
/** Connections and files that may stay open beyond those at the start. */
const SPARE_FILES = 20;
/** Beside the heap there may be some hundred megabytes: code, buffers, what the store has mapped. */
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
  /** What they were drawn by. */
  readonly seed: number;
  /** Of the case behind which something was seen. */
  readonly index: number;
}

/** `least` is undefined when none of the last cases shows it by itself again. */
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
    // By the same seed and place the same case is drawn, which only then is known well enough to be made smaller.
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

/** All connections of cases are closed, so what they took is given back, after a while. */
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
