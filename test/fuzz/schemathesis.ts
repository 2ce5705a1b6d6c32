/** Runs schemathesis, which makes requests from the OpenAPI document, as CI installs and runs it, but for longer. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** The number of examples that CI runs in a minute. */
const EXAMPLES_PER_MINUTE = 50;

interface Options {
  readonly seed: number;
  readonly minutes: number;
  readonly say: (text: string) => void;
}

/** Resolves to true if it found nothing. Its output is shown as it comes. */
export async function findSchemathesis({ seed, minutes, say }: Options): Promise<boolean> {
  const examples = Math.max(EXAMPLES_PER_MINUTE, Math.round(EXAMPLES_PER_MINUTE * minutes));
  say(
    `\n.ci/schemathesis with EXAMPLES=${examples} SEED=${seed}; it installs itself where it is missing (Python 3 with venv)`,
  );
  const root = join(import.meta.dirname, "../..");
  const child = spawn(join(root, ".ci/schemathesis"), {
    cwd: root,
    env: { ...process.env, EXAMPLES: `${examples}`, SEED: `${seed}` },
    stdio: "inherit",
  });
  const [code] = await once(child, "exit");
  return code === 0;
}
