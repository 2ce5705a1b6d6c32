/** Runs a load generator to its end. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Longer than it was told to run, it may take so long: to start, and for the last answers. */
const PATIENCE_MS = 60_000;

/** Resolves to what the last line of its output says, in JSON. */
export async function lastLine<T>(command: string, args: readonly string[], seconds: number): Promise<T> {
  const { stdout } = await execute(command, args, { timeout: seconds * 1000 + PATIENCE_MS });
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as T;
}
