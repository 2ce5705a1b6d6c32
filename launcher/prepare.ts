/** What a start does first, whether it is one of five processes or of one. */
import { type LauncherConfig, launcherConfig, launcherWarnings, takeDataDir } from "./config.ts";
import { paint, say } from "./screen.ts";

/** How often it is looked whether npm is still there, in milliseconds. */
const PARENT_MS = 500;

/**
 * Reads the configuration, says what is odd about it, and takes the data directory. From then on calls `orphaned` when npm,
 * which started this process, is gone. `ports`: how many ports one process serves. Throws `ConfigError`.
 */
export async function prepare(orphaned: () => unknown, ports = 1): Promise<LauncherConfig> {
  const warnings = launcherWarnings();
  for (const { text } of warnings) say(paint("yellow", text));
  const config = launcherConfig(undefined, undefined, { ports, warnings });
  const { fewFiles, port, dataDir, endsWithParent } = config;
  if (fewFiles !== undefined) say(paint("yellow", fewFiles));
  if (endsWithParent) whenOrphaned(orphaned);
  if (dataDir !== undefined) await takeDataDir(dataDir, port);
  return config;
}

/** Polls whether the parent has changed, as there is no event for it. */
function whenOrphaned(end: () => unknown): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    end();
  }, PARENT_MS);
  watch.unref();
}
