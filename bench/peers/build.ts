/** Builds a peer in a folder of its own, once, and again after its sources have changed. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { join, resolve } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Where a peer is built. */
export const buildDir = (name: string): string => join(root, "node_modules/.cache/bench", name);

export interface Build {
  readonly name: string;
  /** Files and folders: from their path in the build's folder to their path in the repository. */
  readonly sources: Readonly<Record<string, string>>;
  /** Commands to run there one after the other. */
  readonly commands: readonly (readonly [string, ...string[]])[];
  readonly env?: Readonly<Record<string, string>>;
}

/** @throws Error with the output of a command that failed */
export async function build(what: Build, progress: (text: string) => void): Promise<void> {
  const dir = buildDir(what.name);
  const stamp = join(dir, ".built");
  const fingerprint = fingerprintOf(what);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint) return;
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  for (const [to, from] of Object.entries(what.sources))
    cpSync(resolve(root, from), join(dir, to), { recursive: true });
  for (const command of what.commands) {
    progress(command.join(" "));
    await run(command, dir, what.env);
  }
  writeFileSync(stamp, fingerprint);
}

function fingerprintOf({ sources, commands, env }: Build): string {
  const hash = createHash("sha256").update(JSON.stringify([sources, commands, env, process.version]));
  for (const from of Object.values(sources).map((path) => resolve(root, path))) {
    const files = statSync(from).isDirectory() ? globSync(join(from, "**/*")).sort() : [from];
    for (const file of files) if (statSync(file).isFile()) hash.update(`\0${file}\0`).update(readFileSync(file));
  }
  return hash.digest("hex");
}

async function run([command, ...args]: readonly [string, ...string[]], cwd: string, env = {}): Promise<void> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => output.push(chunk));
  child.once("spawn", () => setPriority(child.pid as number, 10));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`"${[command, ...args].join(" ")}" failed in ${cwd}:\n${Buffer.concat(output)}`);
}
