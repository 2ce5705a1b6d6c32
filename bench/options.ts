/** Checks options of the command line, and explains wrong ones. */

export const listed = (text: string): string[] => text.split(",").map((part) => part.trim());

export function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`${name} must be a whole number above 0, not ${text}.`);
}

export function known<T extends string>(what: string, names: readonly string[], allowed: readonly T[]): readonly T[] {
  const unknown = names.find((name) => !(allowed as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Error(`There is no ${what} ${unknown}. There are ${allowed.join(", ")}.`);
  return names as readonly T[];
}

/**
 * Runs a command. If it fails, the process ends with a line for people. On SIGINT and SIGTERM it ends by `exit`, which ends
 * its children, too.
 */
export async function command(work: () => Promise<void>): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  try {
    await work();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  }
}
