/** Spreads runs over processes. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { addCoverage, type Coverage, noCoverage } from "./coverage.ts";
import type { Part, Report } from "./worker.ts";

export interface Failure {
  readonly run: number;
  readonly violations: readonly string[];
  /** Undefined if it was not waited for. */
  readonly story?: readonly string[];
}

export interface Simulation {
  readonly seed: number;
  /** The first run, and the one after the last. */
  readonly first: number;
  readonly end: number;
  readonly processes: number;
  /** The tree whose code runs. */
  readonly root?: string;
  readonly onRan?: (runs: number) => void;
  /** Told of a failure before it is shrunk. */
  readonly onFailure?: (failure: Failure) => void;
  /** Whether a failure is shrunk and told. By default it is. */
  readonly tells?: boolean;
  /** Most time between two reports of a process: a run that lasts longer does not end. */
  readonly timeoutMs?: number;
}

/** Resolves when all has run, or with the first failure. Rejects when a process ends before it has reported. */
export async function simulate(simulation: Simulation): Promise<{ coverage: Coverage; failure: Failure | undefined }> {
  const { seed, first, end, processes, root = ".", onRan = () => {}, onFailure = () => {} } = simulation;
  const { tells = true, timeoutMs } = simulation;
  const coverage = noCoverage();
  let failure: Failure | undefined;
  using stack = new DisposableStack();
  const children = Array.from({ length: processes }, (_, index) => {
    const part: Part = { seed, first: first + index, step: processes, end };
    // Most of what a history allocates lives shorter than it does.
    const execArgv = [...process.execArgv, "--max-semi-space-size=64"];
    const child = fork(join(root, "test/simulation/worker.ts"), [JSON.stringify(part)], { cwd: root, execArgv });
    stack.defer(() => void child.kill("SIGKILL"));
    return child;
  });

  await Promise.all(
    children.map(async (child) => {
      let isOver = false;
      let isLate = false;
      const late = () => {
        isLate = true;
        child.kill("SIGKILL");
      };
      const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
      child.on("message", (message) => {
        timer?.refresh();
        const report = message as Report;
        if (report.is === "ran") onRan(report.runs);
        if (report.is === "told" && failure) failure = { ...failure, story: report.story };
        if (report.is === "over") {
          isOver = true;
          addCoverage(coverage, report.coverage);
        }
        if (report.is !== "failed" || failure) return;
        failure = report;
        onFailure(report);
        for (const other of children) if (other !== child || !tells) other.kill("SIGKILL");
      });
      const [code, signal] = await once(child, "exit");
      clearTimeout(timer);
      if (isLate) throw new Error("A run of the simulation does not end.");
      if (!isOver && !failure)
        throw new Error(`A process of the simulation ended early (${signal ?? `exit code ${code}`}).`);
    }),
  );
  return { coverage, failure };
}
