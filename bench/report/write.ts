/** Writes result files. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** `files` has the texts by the names of their files. */
export function writeResults(dir: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
}
