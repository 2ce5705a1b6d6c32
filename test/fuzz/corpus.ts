/** Saved cases: a case that was found once is tried in every run. */
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";

const FOLDER = join(import.meta.dirname, "cases");

export interface SavedCase {
  /** The path in the folder of cases, such as "http/a-body-without-end.json". */
  readonly name: string;
  readonly target: string;
  /** The problem that it caused, or what it is to show. */
  readonly problem: string;
  readonly case: unknown;
}

export function savedCases(): SavedCase[] {
  return globSync(join(FOLDER, "*/*.json"))
    .sort()
    .map((path) => {
      const { problem, case: one } = JSON.parse(readFileSync(path, "utf8")) as { problem: string; case: unknown };
      return { name: relative(FOLDER, path), target: basename(dirname(path)), problem, case: one };
    });
}

/** Saves a case under a name that depends on the problem and the case alone. Returns the path. */
export function saveCase(target: string, problem: string, one: unknown): string {
  const words = problem
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 50);
  const mark = createHash("sha256").update(JSON.stringify(one)).digest("hex").slice(0, 6);
  const path = join(FOLDER, target, `${words}-${mark}.json`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ problem, case: one }, null, 2)}\n`);
  return relative(process.cwd(), path);
}
