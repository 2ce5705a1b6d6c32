/**
 * Starts and ends the programs of a peer. Standard output is discarded; standard error is shown if a program ends by itself.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";

/** A program that has not ended by then is killed. In milliseconds. */
const STOP_MS = 20_000;

export interface Program {
  readonly pid: number;
  /** Sends SIGTERM, and after STOP_MS SIGKILL. */
  stop(): Promise<void>;
}

export type Environment = Readonly<Record<string, string>>;

/** Starts a program with this environment, PATH and HOME, and nothing else of the runner's environment. */
export async function startProgram(command: string, args: readonly string[], env: Environment): Promise<Program> {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(command, args, { env: { PATH, HOME, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  await once(child, "spawn");
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    complaints = (complaints + text).slice(-4000);
  });
  let mayEnd = false;
  const ended = once(child, "exit").then(() => {
    if (!mayEnd) process.stderr.write(`\n${[command, ...args].join(" ")} ended by itself:\n${complaints}\n`);
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  return {
    pid: child.pid as number,
    async stop() {
      mayEnd = true;
      child.kill("SIGTERM");
      const late = setTimeout(kill, STOP_MS);
      await ended;
      clearTimeout(late);
      process.off("exit", kill);
    },
  };
}

/** Starts a script with the runner's own Node. */
export const startNode = (script: string, env: Environment) => startProgram(process.execPath, [script], env);

/** Several programs as one running peer. */
export function together(url: string, programs: readonly Program[]) {
  return {
    url,
    pids: programs.map(({ pid }) => pid),
    stop: async () => void (await Promise.all(programs.map((program) => program.stop()))),
  };
}
