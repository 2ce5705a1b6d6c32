/** Says in the last lines of a run that there was no MongoDB, for a test that is skipped proves nothing. */
import type { Reporter } from "vitest/node";
import { mongodMissing } from "./mongod.ts";

const MISSING = `
  NOT RUN: the tests on MongoDB, for there is no mongod here.
  To run them, fetch one with .ci/mongod (x86-64 Linux), or install MongoDB 6.0 or newer and put it in the PATH or MONGOD.
`;

/** With CI=true a run without a mongod fails before it starts. */
export function mongodReporter(environment = process.env, missing = mongodMissing): Reporter {
  if (!missing) return {};
  if (environment.CI === "true") throw new Error(MISSING);
  // After the summary, which is printed at the same event.
  return { onTestRunEnd: () => void process.once("exit", () => process.stderr.write(MISSING)) };
}
