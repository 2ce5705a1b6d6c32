/** Settings as whoever runs a process sees them: which are in force, and which variables look like misspelled ones. Pure. */
import type { Environment, Setting } from "./environment.ts";

/** The variable in which a launcher names those that it chose by itself, separated by commas. */
export const CHOSEN = "LAUNCHER_CHOSE";

export interface InForce {
  /** As it was read: times in milliseconds. Of a secret only that there is one; null for what is not set. */
  readonly value: unknown;
  readonly from: "default" | "environment" | "file" | "launcher";
}

/** Takes an environment that `readEnvironment` has read without a complaint. */
export function settingsInForce(
  environment: Environment,
  settings: Readonly<Record<string, Setting<unknown>>>,
): Readonly<Record<string, InForce>> {
  const chosen = new Set(environment[CHOSEN]?.split(","));
  const inForce = ([name, { format, absent }]: [string, Setting<unknown>]): [string, InForce] => {
    const given = environment[name]?.trim();
    const inFile = format.isHidden && environment[`${name}_FILE`]?.trim();
    if (!given && !inFile) return [name, { value: shown(absent), from: "default" }];
    const value = format.isHidden ? "[secret]" : shown(format.read(given ?? ""));
    return [name, { value, from: inFile ? "file" : chosen.has(name) ? "launcher" : "environment" }];
  };
  return Object.fromEntries(Object.entries(settings).map(inForce));
}

/** What JSON can show. */
const shown = (value: unknown): unknown => (value instanceof Map ? Object.fromEntries(value) : (value ?? null));

/** A variable that has no effect, and what to say of it. */
export type Warning = { readonly name: string; readonly text: string };

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
