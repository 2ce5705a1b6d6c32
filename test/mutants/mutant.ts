/** Guards of the code, each with the mutant that lacks it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** To add one: its guard in a sentence, the text that is the guard, and what stands in its place. */
export interface Mutant {
  /** What holds with the guard. */
  readonly guard: string;
  /** A text before `find`, if `find` alone stands in the file more than once. */
  readonly after?: string;
  readonly find: string;
  readonly put: string;
  /** What notices it, if no random history can: the tests beside the code, or those of a file in test. */
  readonly by?: "tests" | `test/${string}.ts`;
}

export interface Guarded {
  readonly file: string;
  readonly mutants: readonly Mutant[];
}

/**
 * The file without the guard.
 * @throws Error if the text of the guard is not in the file, or more than once.
 */
export function mutate(root: string, file: string, { guard, after = "", find, put }: Mutant): string {
  const text = readFileSync(join(root, file), "utf8");
  const fail = (why: string) =>
    new Error(`${file}: the mutant of "${guard}" does not apply: ${why}. Mend test/mutants.`);
  const [from, another] = placesOf(text, after === "" ? text : after);
  if (from === undefined) throw fail(`\`${after}\` is not there`);
  if (another !== undefined) throw fail(`\`${after}\` is there more than once`);
  const at = text.indexOf(find, after === "" ? 0 : from);
  if (at < 0) throw fail(`\`${find}\` is not there`);
  if (after === "" && text.indexOf(find, at + 1) >= 0) throw fail(`\`${find}\` is there more than once`);
  return text.slice(0, at) + put + text.slice(at + find.length);
}

function placesOf(text: string, part: string): number[] {
  const first = text.indexOf(part);
  if (first < 0) return [];
  const second = text.indexOf(part, first + 1);
  return second < 0 ? [first] : [first, second];
}
