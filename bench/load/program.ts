/** Runs a load generator to its end. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Time beyond the duration of its load, to start and to receive the last answers. */
const PATIENCE_MS = 60_000;

/** Runs the command and parses the last line of its output as JSON. */
export async function lastLine<T>(command: string, args: readonly string[], seconds: number): Promise<T> {
  const { stdout } = await execute(command, args, { timeout: seconds * 1000 + PATIENCE_MS });
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as T;
}
