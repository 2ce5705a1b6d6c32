/** Finds programs that tests need besides Node. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The program's path if it is in the PATH or in `others`. */
export function findProgram(
  name: string,
  { path = process.env.PATH, others = [] }: { path?: string | undefined; others?: readonly string[] } = {},
): string | undefined {
  return [...(path ?? "").split(delimiter).map((dir) => join(dir, name)), ...others].find(isExecutable);
}

export function isExecutable(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
