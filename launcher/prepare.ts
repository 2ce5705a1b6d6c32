/** What a start does first, whether it is one of five processes or of one. */
import { type LauncherConfig, launcherConfig, launcherWarnings, takeDataDir } from "./config.ts";
import { paint, say } from "./screen.ts";

/** How often it is looked whether npm is still there, in milliseconds. */
const PARENT_MS = 500;

/**
 * Reads the configuration, says what is odd about it, and takes the data directory. From then on calls `orphaned` when npm,
 * the process `startedBy`, is gone: it passes SIGKILL on to nobody. `ports`: how many ports one process serves. Throws
 * `ConfigError`.
 */
export async function prepare(
  startedBy: number | undefined,
  orphaned: () => unknown,
  ports = 1,
): Promise<LauncherConfig> {
  const warnings = launcherWarnings();
  for (const { text } of warnings) say(paint("yellow", text));
  const config = launcherConfig(undefined, undefined, { ports, warnings });
  const { fewFiles, port, dataDir } = config;
  if (fewFiles !== undefined) say(paint("yellow", fewFiles));
  if (startedBy !== undefined) whenGone(startedBy, orphaned);
  if (dataDir !== undefined) await takeDataDir(dataDir, port);
  return config;
}

/**
 * Polls whether npm is gone, as there is no event for it; it may be gone already. Where its shell stays between npm and this
 * process, the parent does not change. Where nobody asks how npm ended, its id stays in use.
 */
function whenGone(npm: number, end: () => unknown): void {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent && exists(npm)) return;
    clearInterval(watch);
    end();
  }, PARENT_MS);
  watch.unref();
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0); // sends nothing
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
