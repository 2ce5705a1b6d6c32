/** Starts and ends the programs of a peer. Their output goes nowhere, and what they complain of to standard error. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** A program that has not ended by then is killed. */
const STOP_MS = 20_000;

export interface Program {
  readonly pid: number;
  readonly child: ChildProcess;
  /** SIGTERM, and after a while SIGKILL. */
  stop(): Promise<void>;
}

export type Environment = Readonly<Record<string, string>>;

/** Programs get this environment, the PATH, and nothing else of the runner's. */
export async function startProgram(command: string, args: readonly string[], env: Environment): Promise<Program> {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(command, args, { env: { PATH, HOME, ...env }, stdio: ["ignore", "ignore", "inherit"] });
  await once(child, "spawn");
  const ended = once(child, "exit");
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  return {
    pid: child.pid as number,
    child,
    async stop() {
      child.kill("SIGTERM");
      const late = setTimeout(kill, STOP_MS);
      await ended;
      clearTimeout(late);
      process.off("exit", kill);
    },
  };
}

/** A Node program, by the Node that runs this. */
export const startNode = (script: string, env: Environment) => startProgram(process.execPath, [script], env);

/** Several programs as one running peer. */
export function together(url: string, programs: readonly Program[]) {
  return {
    url,
    pids: programs.map(({ pid }) => pid),
    stop: async () => void (await Promise.all(programs.map((program) => program.stop()))),
  };
}
