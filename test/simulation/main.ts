/** `npm run simulate`: random histories of the whole petstore, as many as asked for. See `--help`. */
import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { command, wholeNumber } from "../../bench/options.ts";
import { createProgress } from "../../bench/progress.ts";
import { uncovered } from "./coverage.ts";
import { simulate } from "./simulate.ts";

const help = `npm run simulate -- [options]

Lets random histories happen to the four services in one process, on disks in memory, by a schedule that a seed decides:
clients and watchers, processes that die at any step or stop in good order, calls that are lost, late, doubled or never
answered, slow disks, clocks that jump or run apart, keys that are sent again in their last hours. Each history is checked
against the invariants of docs/reliability.md, and against what its clients and watchers were told. The first that fails
ends the run: it is made as small as it gets and told.

  --runs N            how many (20000)
  --seed N            repeats them (another one each time)
  --run N             only this one of the seed's
`;

const RUNS = "20000";

interface Options {
  readonly seed: number;
  readonly first: number;
  readonly end: number;
}

async function run({ seed, first, end }: Options): Promise<void> {
  const progress = createProgress();
  const runs = end - first;
  const startedAt = Date.now();
  let done = 0;
  const rate = () => Math.round((done * 1000) / Math.max(1, Date.now() - startedAt));
  const { coverage, failure } = await (async () => {
    using bar = progress.bar(`seed ${seed}`, runs);
    return await simulate({
      ...{ seed, first, end, processes: Math.min(runs, availableParallelism()) },
      onRan(more) {
        done += more;
        bar.step(more, `${done} of ${runs} runs, ${rate()} a second`);
      },
      onFailure: () => bar.step(0, "one has failed: making it smaller"),
    });
  })();
  if (failure) {
    const { run, violations, story = violations } = failure;
    process.stdout.write(`\nRun ${run} of seed ${seed} fails. The smallest such history:\n\n`);
    for (const line of story) process.stdout.write(`${line}\n`);
    process.stdout.write(`\nOnce more: npm run simulate -- --seed ${seed} --run ${run}\n`);
    process.exitCode = 1;
    return;
  }
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  process.stdout.write(`\nseed ${seed}: ${runs} runs in ${seconds} s, ${rate()} a second. Nothing is wrong.\n`);
  for (const [part, counts] of Object.entries(coverage) as [string, Record<string, number>][]) {
    const all = Object.entries(counts).sort(([, a], [, b]) => b - a);
    const sum = all.reduce((sum, [, count]) => sum + count, 0);
    process.stdout.write(`  ${sum} ${part}: ${all.map(([what, count]) => `${what} ${count}`).join(", ")}\n`);
  }
  const missing = uncovered(coverage);
  if (runs === 1 || missing.length === 0) return;
  process.stdout.write(
    `\nNever once: ${missing.join(", ")}. Such a run proves nothing about it; give it more --runs.\n`,
  );
  process.exitCode = 1;
}

await command(async () => {
  const { values } = parseArgs({
    options: {
      runs: { type: "string" },
      seed: { type: "string" },
      run: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  if (values.run !== undefined && values.runs !== undefined)
    throw new Error("--run is one run and --runs are many: give one of them.");
  if (values.run !== undefined && values.seed === undefined) throw new Error("--run needs the --seed that it is of.");
  const seed = values.seed === undefined ? randomInt(1, 2 ** 31) : wholeNumber("--seed", values.seed);
  const only = values.run === undefined ? undefined : wholeNumber("--run", values.run);
  const runs = wholeNumber("--runs", values.runs ?? RUNS);
  await run(only === undefined ? { seed, first: 1, end: runs + 1 } : { seed, first: only, end: only + 1 });
});
