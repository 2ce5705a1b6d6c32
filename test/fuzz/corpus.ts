/** Cases in files: what was found once is tried for ever. */
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";

const FOLDER = join(import.meta.dirname, "cases");

export interface SavedCase {
  /** From the folder of cases, such as "http/a-body-without-end.json". */
  readonly name: string;
  readonly target: string;
  /** What it did, or what it is to show. */
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

/** Writes a case down, under a name that the same problem and case always get. Gives the path. */
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
