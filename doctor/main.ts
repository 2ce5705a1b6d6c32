/** `npm run doctor`: reads all that the petstore has stored, and names what is broken. */
import { constants } from "node:os";
import { parseArgs } from "node:util";
import { realTime } from "@petstore/runtime/clock";
import { ConfigError } from "@petstore/runtime/environment";
import { showProgress } from "../processes/progress.ts";
import { doctorConfig } from "./config.ts";
import { examine, mend } from "./doctor.ts";
import { around, CannotLook, type Finding, report, shownOf } from "./findings.ts";

const help = `npm run -s doctor -- [options]     reads all that the petstore has stored, and names what is broken

It finds the data as the petstore does: by DATA_DIR, or by MONGODB_URI. A petstore that runs may go on: what is found
counts if it is found again 5 s later. docs/doctor.md has what each finding means.

options
  --json           {"findings": [{"invariant", "ids", "detail", "repair": "safe" | "manual" | null}]}
  --repair         mends what is safe to mend, and says what it did. Stop the petstore for it
  --dry-run        with --repair: says what it would mend, and changes nothing
  --help

ends with 0 if nothing is found, or left; with 1 if something is; with 2 if it could not look
`;

const options = {
  json: { type: "boolean", default: false },
  repair: { type: "boolean", default: false },
  "dry-run": { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

const say = (text: string) => void process.stderr.write(`${text}\n`);

async function doctor(): Promise<readonly Finding[]> {
  const config = doctorConfig(process.env);
  using progress = showProgress(process.stderr, realTime.clock);
  const options = { time: realTime, progress: progress.note, say };
  return values.repair ? mend(config, values["dry-run"], options) : examine(config, options);
}

function parse() {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    say(`${(error as Error).message}\n\n${help}`);
    process.exit(2);
  }
}

// So that it leaves nothing behind.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => process.exit(128 + constants.signals[signal]));

const values = parse();
if (values["dry-run"] && !values.repair) {
  say("--dry-run goes with --repair: without that nothing is changed anyway.");
  process.exit(2);
}
if (values.help) process.stdout.write(help);
else
  try {
    show(await doctor());
  } catch (error) {
    if (!(error instanceof CannotLook || error instanceof ConfigError)) say(`${(error as Error).stack}`);
    else say(error.message);
    if (error instanceof CannotLook && error.isVersion) show([around("env-version", error.message)]);
    process.exitCode = 2;
  }

function show(found: readonly Finding[]): void {
  process.stdout.write(values.json ? `${JSON.stringify({ findings: found.map(shownOf) })}\n` : report(found));
  process.exitCode = found.length > 0 ? 1 : 0;
}
