/** `npm run mutants`: removes one guard after the other, and says which test notices. See `--help`. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { command } from "../../bench/options.ts";
import { createProgress } from "../../bench/progress.ts";
import { copyTree } from "./copied-tree.ts";
import { type Guard, guards, wrongMutants } from "./guards.ts";
import { PAGE, withOutcomes } from "./table.ts";
import { type Killed, requireTests, tryMutant } from "./trial.ts";

const help = `npm run mutants -- [options] [FILE...]

Each guard in test/mutants has a mutant: the code without it. Each is tried in a copy of the tree, until something notices:
some random histories of the simulation, the tests beside the code, and at last many more histories. What kills it is
written into ${PAGE}. A mutant that survives shows a guard that nobody needs, or a hole in the tests; then the
command fails.

Without options those of files that differ from the commit where this branch left main; in main, from the last commit but one.

  FILE...             those of these files, such as services/pet/rules.ts
  --all               all
  --check             none: only looks whether each still applies
`;

function changedFiles(): readonly string[] {
  const git = (...args: string[]) =>
    execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const isBranch = spawnSync("git", ["merge-base", "--is-ancestor", "HEAD", "main"]).status === 1;
  const base = isBranch ? git("merge-base", "main", "HEAD").trim() : "HEAD~1";
  return git("diff", "--name-only", base).trim().split("\n");
}

async function tryAll(chosen: readonly Guard[]): Promise<void> {
  const progress = createProgress();
  const outcomes = new Map<string, Killed | undefined>();
  const waiting = [...chosen];
  using bar = progress.bar("mutants", chosen.length);
  {
    using tree = copyTree();
    await requireTests(tree, chosen);
  }
  const work = async () => {
    using tree = copyTree();
    for (let guard = waiting.shift(); guard; guard = waiting.shift()) {
      const killed = await tryMutant(tree, guard);
      outcomes.set(guard.guard, killed);
      progress.say(`${guard.file}: ${guard.guard}\n  ${outcomeOf(killed)}`);
      bar.step(1, guard.file);
      writeFileSync(PAGE, withOutcomes(readFileSync(PAGE, "utf8"), outcomes));
    }
  };
  await Promise.all(Array.from({ length: Math.min(chosen.length, availableParallelism()) }, work));
  const survivors = chosen.filter(({ guard }) => !outcomes.get(guard));
  process.stdout.write(`${chosen.length} mutants, ${survivors.length} survived\n`);
  for (const { file, guard, find } of survivors) process.stdout.write(`SURVIVED: ${file}: ${guard}: ${find}\n`);
  if (survivors.length > 0) process.exitCode = 1;
}

function outcomeOf(killed: Killed | undefined): string {
  if (!killed) return "SURVIVED";
  return `killed${killed.runs === undefined ? "" : ` after ${killed.runs} runs`}: ${killed.by.split("\n")[0]}`;
}

await command(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const wrong = wrongMutants();
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
  if (values.check) {
    process.stdout.write(`all ${guards.length} mutants apply\n`);
    return;
  }
  const unknown = positionals.find((path) => !guards.some(({ file }) => file === path));
  if (unknown !== undefined) throw new Error(`No guard of ${unknown} has a mutant.`);
  const files = positionals.length > 0 ? positionals : changedFiles();
  await tryAll(guards.filter(({ file }) => values.all || files.includes(file)));
});
