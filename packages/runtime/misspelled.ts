/** Finds variables that look like misspelled settings, which would be ignored without a word. Pure. */
import type { Environment, Setting } from "./environment.ts";

/** A variable that has no effect, and what to say of it. */
export interface Warning {
  readonly name: string;
  readonly text: string;
}

/** How many are named. */
const MAX_WARNINGS = 10;

/** How many edits make a name one that was meant. A short name is close to too many others: HOME is two edits from HOST. */
const editsOf = (setting: string): number => (setting.length < 8 ? 1 : 2);

/** Variables that differ from a setting, which is not set itself, by an edit or two, by case or by underscores. */
export function misspelledIn(
  environment: Environment,
  settings: Readonly<Record<string, Setting<unknown>>>,
): readonly Warning[] {
  const known = Object.entries(settings).flatMap(([name, { format }]) =>
    format.isHidden ? [name, `${name}_FILE`] : [name],
  );
  const missing = known.filter((name) => !environment[name]?.trim());
  return Object.entries(environment)
    .filter(([name, value]) => value?.trim() && !known.includes(name))
    .flatMap(([name]) => {
      const meant = nearest(name, missing);
      return meant === undefined ? [] : [{ name, text: `${name} has no effect: perhaps ${meant} is meant.` }];
    })
    .slice(0, MAX_WARNINGS);
}

function nearest(name: string, settings: readonly string[]): string | undefined {
  const within = (edits: number) =>
    settings.find((setting) => edits <= editsOf(setting) && isWithin(edits, plain(name), plain(setting)));
  return within(0) ?? within(1) ?? within(2);
}

const plain = (name: string): string => name.toUpperCase().replaceAll("_", "");

/** Whether so many edits make one text of the other: a character more, less, exchanged, or swapped with the next. */
function isWithin(edits: number, a: string, b: string): boolean {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  const [x, y] = [a.slice(same), b.slice(same)];
  if (x === y) return true;
  const rest = edits - 1;
  return (
    rest >= 0 &&
    (isWithin(rest, x.slice(1), y.slice(1)) ||
      isWithin(rest, x.slice(1), y) ||
      isWithin(rest, x, y.slice(1)) ||
      (x[0] === y[1] && x[1] === y[0] && isWithin(rest, x.slice(2), y.slice(2))))
  );
}
