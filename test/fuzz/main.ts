/** `npm run fuzz`: sends random inputs for as long as asked, and reports what breaks. See `--help`. */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { command, known, listed, wholeNumber } from "../../bench/options.ts";
import { createProgress } from "../../bench/progress.ts";
import { type Finding, fuzz } from "./fuzzing.ts";
import { findSchemathesis } from "./schemathesis.ts";
import { targets } from "./targets.ts";

const SCHEMATHESIS = "schemathesis";
const names = [...targets.map(({ name }) => name), SCHEMATHESIS];

const help = `npm run fuzz -- [options]

Sends inputs by chance to a petstore of its own, and gives some to the functions that read text from outside. What must
not be: a process that ends, an error in the log, an answer that is not well-formed or speaks of a fault of the server,
processor time beyond what the bytes deserve, connections that stay open, something that was refused and has changed
something all the same. For each find the smallest case is written into test/fuzz/cases, where a test tries it for ever.

  --minutes N         how long (10)
  --seed N            repeats a run (another one each time)
  --tls               to a petstore whose ports take TLS alone
  --targets A,B       only these (all):
${[
  ...targets,
  {
    name: SCHEMATHESIS,
    about:
      "requests made from /openapi.json, by .ci/schemathesis; when all are run, from 10 minutes on and without TLS",
  },
]
  .map(({ name, about }) => `                        ${name.padEnd(16)}${about}`)
  .join("\n")}
`;

interface Run {
  readonly minutes: number;
  readonly seed: number;
  readonly tls: boolean;
  readonly chosen: readonly string[];
}

async function run({ minutes, seed, tls, chosen }: Run): Promise<void> {
  const progress = createProgress();
  progress.say(
    `seed ${seed}: npm run fuzz -- --seed ${seed} --minutes ${minutes} --targets ${chosen.join(",")}${tls ? " --tls" : ""}`,
  );
  const cases = new Map<string, number>();
  const findings: Finding[] = [];
  const startedAt = Date.now();
  const share = chosen.includes(SCHEMATHESIS) ? 1 / chosen.length : 0;
  const seconds = Math.round(minutes * 60 * (1 - share));
  const own = targets.filter(({ name }) => chosen.includes(name));
  let shown = 0;
  if (own.length > 0) {
    using bar = progress.bar("fuzzing", seconds);
    const passed = () => (Date.now() - startedAt) / 1000;
    await fuzz({
      targets: own,
      seed,
      tls,
      isOver: () => passed() >= seconds,
      onCase(target) {
        cases.set(target, (cases.get(target) ?? 0) + 1);
        const now = Math.min(seconds, Math.floor(passed()));
        if (now > shown)
          bar.step(now - shown, `${sum([...cases.values()])} cases, ${findings.length} finds; ${target}`);
        shown = now;
      },
      onFinding(finding) {
        findings.push(finding);
        progress.say(`\n${describe(finding)}`);
      },
    });
  }
  const failed = share > 0 && !(await findSchemathesis({ seed, minutes: minutes * share, say: progress.say }));
  const rows = own.map(({ name }) => {
    const found = findings.filter(({ target }) => target === name).length;
    return `  ${name.padEnd(16)}${String(cases.get(name) ?? 0).padStart(9)} cases  ${found} finds`;
  });
  process.stdout.write(
    `\nseed ${seed}, ${Math.round((Date.now() - startedAt) / 60_000)} minutes\n${rows.join("\n")}\n`,
  );
  for (const finding of findings) process.stdout.write(`\n${describe(finding)}\n`);
  if (share > 0)
    process.stdout.write(
      `  ${SCHEMATHESIS.padEnd(16)}${failed ? "has found something, see above" : "found nothing"}\n`,
    );
  const idle = own.filter(({ name }) => !cases.has(name)).map(({ name }) => name);
  if (idle.length > 0) process.stdout.write(`\n${idle.join(", ")}: no case was tried. Give it more --minutes.\n`);
  if (failed || findings.length > 0 || idle.length > 0) process.exitCode = 1;
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
const describe = ({ target, find, path }: Finding): string =>
  `${target}: ${find.message}\n  ${path ?? "no case by itself shows it again"}`;

await command(async () => {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "10" },
      seed: { type: "string", default: `${randomInt(1, 2 ** 31)}` },
      targets: { type: "string" },
      tls: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const minutes = wholeNumber("--minutes", values.minutes);
  const seed = wholeNumber("--seed", values.seed);
  const all = minutes >= 10 && !values.tls ? names : names.filter((name) => name !== SCHEMATHESIS);
  const chosen = known("target", values.targets === undefined ? all : listed(values.targets), names);
  await run({ minutes, seed, tls: values.tls, chosen });
});
