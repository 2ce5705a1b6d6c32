#!/usr/bin/env node
/** `petstore-test`: a petstore for tests in any language. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { parseArgs } from "node:util";
import { type StartOptions, startPetstore } from "./index.ts";

const help = `petstore-test [options] [-- COMMAND]     starts a petstore for tests: in memory, on ports by chance

COMMAND finds it by PETSTORE_URL and PETSTORE_ADMIN_URL. When COMMAND ends, the petstore does, and the exit code is
COMMAND's. Without COMMAND both addresses are printed, and the petstore stays until it gets a signal, or until the
process that started it is gone.

options
  --seed N      draws the pets: the same seed, the same pets (1)
  --pets N      how many there are, with their categories and orders (0)
  --now T       where its clock begins, such as 2030-01-31 or 2030-01-31T12:00:00Z (now)
  --faults FILE calls that fail, as JSON: docs/testing.md
  --help

Its settings are those of every petstore, as variables such as RATE_LIMIT=10/s.
`;

const USAGE = 2;
const NOT_STARTED = 1;
const NOT_FOUND = 127;
/** How often it is looked whether the parent is still there, in milliseconds: no event tells. */
const PARENT_MS = 500;

class UsageError extends Error {}

function optionsIn(args: string[]): StartOptions | undefined {
  const text = { type: "string" } as const;
  const { seed, pets, now, faults, help } = parseArgs({
    args,
    options: { seed: text, pets: text, now: text, faults: text, help: { type: "boolean" } },
  }).values;
  if (help) return undefined;
  const env = { ...process.env, ...(faults && { FAULTS_FILE: faults }) };
  const given = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    seed: number("--seed", seed),
    pets: number("--pets", pets),
    now: time("--now", now),
    env: Object.fromEntries(given),
  };
}

function number(name: string, text: string | undefined): number | undefined {
  if (text === undefined || /^\d{1,9}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new UsageError(`${name} must be a whole number, not ${text}.`);
}

function time(name: string, text: string | undefined): Date | undefined {
  const at = text === undefined ? undefined : new Date(text);
  if (at === undefined || !Number.isNaN(at.getTime())) return at;
  throw new UsageError(`${name} must be a moment such as 2030-01-31 or 2030-01-31T12:00:00Z, not ${text}.`);
}

/** Resolves to the exit code. `ended` resolves when this process is to end. */
async function run(args: readonly string[], ended: Promise<void>): Promise<number> {
  const end = args.indexOf("--");
  const [command, ...parameters] = end < 0 ? [] : args.slice(end + 1);
  if (end >= 0 && command === undefined) throw new UsageError("Say which command to run after --.");
  const options = optionsIn(args.slice(0, end < 0 ? undefined : end));
  if (options === undefined) {
    process.stdout.write(help);
    return 0;
  }
  await using petstore = await startPetstore(options);
  const addresses = { PETSTORE_URL: petstore.url, PETSTORE_ADMIN_URL: petstore.adminUrl };
  if (command === undefined) {
    for (const [name, address] of Object.entries(addresses)) process.stdout.write(`${name}=${address}\n`);
    await ended;
    return 0;
  }
  const child = spawn(command, parameters, { stdio: "inherit", env: { ...process.env, ...addresses } });
  void ended.then(() => child.kill());
  try {
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal as NodeJS.Signals];
  } catch (error) {
    process.stderr.write(`${command} can't be run: ${(error as Error).message}\n`);
    return NOT_FOUND;
  }
}

const ended = Promise.withResolvers<void>();
const hasCommand = process.argv.includes("--");
// A terminal signals COMMAND as well.
process.on("SIGINT", () => hasCommand || ended.resolve());
for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => ended.resolve());
const parent = process.ppid;
setInterval(() => process.ppid === parent || ended.resolve(), PARENT_MS);

try {
  process.exitCode = await run(process.argv.slice(2), ended.promise);
} catch (error) {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const isUsage = error instanceof UsageError || code.startsWith("ERR_PARSE_ARGS");
  process.stderr.write(isUsage ? `${message}\n\n${help}` : `${message}\n`);
  process.exitCode = isUsage ? USAGE : NOT_STARTED;
}
process.exit();
