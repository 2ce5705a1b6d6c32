/** Whether the files of an open store are still where its next start will look for them. */
import { statSync } from "node:fs";
import { NotWritable } from "../port.ts";

/** How often an idle store looks, in milliseconds. */
const LOOK_MS = 500;

/**
 * Files that were removed can still be written, and what is written is lost when they are closed. `lost` is told the first
 * path that leads elsewhere, by a check or by a look from time to time, and throws.
 */
export function watchPlace(paths: readonly string[], lost: (path: string) => never) {
  const files = paths.map((path) => ({ path, opened: look(path) }));
  /** Calls `lost` if a path no longer leads to the file that it led to at first. */
  function check(): void {
    for (const { path, opened } of files) {
      const found = look(path);
      if (found === undefined || found.ino !== opened?.ino || found.dev !== opened.dev) lost(path);
    }
  }
  const timer = setInterval(() => {
    try {
      check();
    } catch {
      clearInterval(timer);
    }
  }, LOOK_MS).unref();
  return { check, [Symbol.dispose]: () => clearInterval(timer) };
}

/** Undefined if there is nothing that could be opened. */
function look(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }); // an inode number may need 64 bits
  } catch {
    return undefined;
  }
}

export const displaced = (path: string): NotWritable =>
  new NotWritable(
    `${path} was moved, removed or replaced while the petstore ran, which takes no more changes: ` +
      "move it back, or restore all files of DATA_DIR from one backup, and start again.",
  );
