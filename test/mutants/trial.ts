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
const TIMEOUT_MS = 15 * 60_000;

/** Resolves to what killed the mutant; undefined if it has survived. */
export async function tryMutant(tree: CopiedTree, { file, ...mutant }: Guard): Promise<Killed | undefined> {
  using _ = tree.without(file, mutant);
  const { root } = tree;
  const tests = () => byTests(root, dirname(file));
  if (mutant.by === "tests") return await tests();
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

async function byTests(root: string, folder: string): Promise<Killed | undefined> {
  const results = join(root, "node_modules/results.json");
  rmSync(results, { force: true });
  const args = ["run", `${folder}/`, "--bail=1", "--maxWorkers=1", "--reporter=json", `--outputFile=${results}`];
  const vitest = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", ...args], {
    ...({ cwd: root, stdio: "ignore", timeout: TIMEOUT_MS, killSignal: "SIGKILL" } as const),
  });
  const kill = () => void vitest.kill("SIGKILL");
  // Before the tree is removed, in which it writes.
  process.prependOnceListener("exit", kill);
  const [code] = await once(vitest, "exit");
  process.off("exit", kill);
  if (code === 0) return undefined;
  if (code === null) return { by: "the tests did not end" };
  const { testResults } = JSON.parse(readFileSync(results, "utf8")) as Results;
  const failed = testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === "failed"),
  )[0];
  return { by: failed?.fullName ?? testResults.find(({ message }) => message !== "")?.message ?? "a test" };
}
