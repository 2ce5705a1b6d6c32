/** Tries a mutant until something notices it: some runs of the simulation, the tests beside the code, many more runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { simulate } from "../simulation/simulate.ts";
import type { CopiedTree } from "./copied-tree.ts";
import type { Guard } from "./guards.ts";

export interface Killed {
  /** What the simulation found, or the name of a test. */
  readonly by: string;
  /** The number of runs of the simulation, if it was the simulation. */
  readonly runs?: number;
}

/** Always the same, so that the table says something. */
const SEED = 1;
const FEW = 1_000;
const MANY = 10_000;
/** A mutant may loop for ever: what lasts longer than this has noticed it. Runs take milliseconds, the tests of a folder seconds. */
const TIMEOUT_MS = 5 * 60_000;

/** Resolves to what killed the mutant; undefined if it has survived. */
export async function tryMutant(tree: CopiedTree, { file, ...mutant }: Guard): Promise<Killed | undefined> {
  using _ = tree.without(file, mutant);
  const { root } = tree;
  const tests = () => byTests(root, testsOf({ file, ...mutant }));
  if (mutant.by) return await tests();
  return (await bySimulation(root, 1, FEW)) ?? (await tests()) ?? (await bySimulation(root, FEW + 1, MANY));
}

async function bySimulation(root: string, first: number, last: number): Promise<Killed | undefined> {
  const one = { seed: SEED, first, end: last + 1, processes: 1, root, tells: false, timeoutMs: TIMEOUT_MS };
  try {
    const { failure } = await simulate(one);
    return failure && { by: failure.violations[0] ?? "", runs: failure.run };
  } catch (error) {
    return { by: error instanceof Error ? error.message : String(error) };
  }
}

interface Results {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** The tests of a guard: a file, or a folder. */
const testsOf = ({ file, by }: Guard): string => (by && by !== "tests" ? by : `${dirname(file)}/`);

/** Throws if tests fail without any mutant: they would kill every one. */
export async function requireTests({ root }: CopiedTree, chosen: readonly Guard[]): Promise<void> {
  for (const tests of new Set(chosen.map(testsOf))) {
    const failed = await byTests(root, tests);
    if (failed) throw new Error(`The tests in ${tests} fail without any mutant: ${failed.by}`);
  }
}

async function byTests(root: string, tests: string): Promise<Killed | undefined> {
  const results = join(root, "node_modules/results.json");
  rmSync(results, { force: true });
  const args = ["run", tests, "--bail=1", "--maxWorkers=1", "--reporter=json", `--outputFile=${results}`];
  const vitest = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", ...args], {
    cwd: root,
    stdio: "ignore",
    detached: true,
    // Where CI is set, a run that lacks tools fails before it says anything; the copy has none, and these tests need none.
    env: { ...process.env, CI: undefined },
  });
  // With its workers: one that loops does not see that it is alone.
  const kill = () => void (vitest.pid && process.kill(-vitest.pid, "SIGKILL"));
  // Before the tree is removed, in which it writes.
  process.prependOnceListener("exit", kill);
  const timer = setTimeout(kill, TIMEOUT_MS);
  const [code] = await once(vitest, "exit");
  clearTimeout(timer);
  process.off("exit", kill);
  if (code === 0) return undefined;
  if (code === null) return { by: "the tests did not end" };
  const { testResults } = JSON.parse(readFileSync(results, "utf8")) as Results;
  const failed = testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === "failed"),
  )[0];
  return { by: failed?.fullName ?? testResults.find(({ message }) => message !== "")?.message ?? "a test" };
}
