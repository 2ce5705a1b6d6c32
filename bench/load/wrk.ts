/** Runs wrk (https://github.com/wg/wrk) with one thread. Its script `wrk.lua` sends the requests that a file lists. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Answered, Load } from "./generator.ts";
import { lastLine } from "./program.ts";
import type { Request } from "./workloads.ts";

const SCRIPT = join(import.meta.dirname, "wrk.lua");

const line = ({ method, path, body, key, settles, isRefused }: Request): string =>
  `${[method, path, body, key, settles ? "settles" : "", isRefused ? "refused" : ""].join("\t")}\n`;

export function runWrk(wrk: string, { url, connections, seconds, requests }: Load, dir: string): Promise<Answered> {
  const list = join(dir, "requests.tsv");
  writeFileSync(list, requests.map(line).join(""));
  const args = ["--threads", "1", "--connections", `${connections}`, "--duration", `${seconds}s`, "--timeout", "10s"];
  return lastLine(wrk, [...args, "--script", SCRIPT, url, "--", list, randomUUID(), `${connections}`], seconds);
}
