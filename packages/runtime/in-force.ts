/** Which settings are in force and where each came from, for whoever looks at a running process. Pure. */
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
