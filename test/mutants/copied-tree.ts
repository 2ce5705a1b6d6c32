/** A copy of the tree in a temporary directory, where mutants are applied: the working tree is never touched. */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { type Mutant, mutate } from "./mutant.ts";

/** What tests of a mutant do not need. */
const LEFT_OUT: readonly string[] = ["node_modules", ".git", "data", "certs"];

export interface CopiedTree extends Disposable {
  readonly root: string;
  /** Applies a mutant until it is disposed of. */
  without(file: string, mutant: Mutant): Disposable;
}

export function copyTree(): CopiedTree {
  const root = mkdtempSync(join(tmpdir(), "mutants-"));
  const remove = () => rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  // Also if the process is interrupted.
  process.once("exit", remove);
  cpSync(".", root, { recursive: true, verbatimSymlinks: true, filter: (path) => !LEFT_OUT.includes(basename(path)) });
  linkModules("node_modules", join(root, "node_modules"));
  return {
    root,
    without(file, mutant) {
      const path = join(root, file);
      const original = readFileSync(path);
      writeFileSync(path, mutate(root, file, mutant));
      return { [Symbol.dispose]: () => writeFileSync(path, original) };
    },
    [Symbol.dispose]() {
      process.off("exit", remove);
      remove();
    },
  };
}

/** Foreign packages are those of the working tree; the tree's own, which are links to its folders, are those of the copy. */
function linkModules(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [path, link] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isSymbolicLink()) symlinkSync(readlinkSync(path), link);
    else if (entry.name.startsWith("@")) linkModules(path, link);
    else if (entry.name !== ".cache") symlinkSync(resolve(path), link);
  }
}
