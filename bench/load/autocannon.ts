/** Runs autocannon (https://github.com/mcollina/autocannon) in a process of its own, `autocannon-child.ts`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Answered, Load } from "./generator.ts";
import { lastLine } from "./program.ts";

const CHILD = join(import.meta.dirname, "autocannon-child.ts");

export function runAutocannon(load: Load, dir: string): Promise<Answered> {
  const file = join(dir, "load.json");
  writeFileSync(file, JSON.stringify(load));
  return lastLine(process.execPath, [CHILD, file], load.seconds);
}
