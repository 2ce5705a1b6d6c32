import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, type Environment, readEnvironment } from "@petstore/runtime/environment";
import { lameDuckSettings, processConfig, processNames, processSettings, storeSettings } from "../config.ts";

export interface LauncherConfig {
  /** What the processes get. */
  readonly environment: Environment;
  /** Undefined when MongoDB stores the data. */
  readonly dataDir: string | undefined;
  /** npm started this process, so it ends with npm: a signal to npm alone does not arrive here. */
  readonly endsWithParent: boolean;
  /** How long the gateway goes on serving after it was told to stop. */
  readonly lameDuckMs: number;
}

/**
 * The environment of the five processes: as it is, with a secret that they share. On a terminal they log warnings and
 * worse unless LOG_LEVEL says otherwise, or the addresses would scroll away. PORT and the services' addresses are for
 * processes that run alone and are left out. Throws `ConfigError`.
 */
export function launcherConfig(
  given: Environment = process.env,
  terminal = process.stdout.isTTY === true,
): LauncherConfig {
  const environment: Record<string, string | undefined> = {
    INTERNAL_SECRET: randomBytes(32).toString("hex"),
    NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/compile"),
    ...(terminal ? { LOG_LEVEL: "warn" } : {}),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value?.trim())),
  };
  for (const name of ["PORT", ...processNames.map((process) => `${process.toUpperCase()}_URL`)])
    delete environment[name];
  const values = readEnvironment(environment, { ...processSettings, ...storeSettings, ...lameDuckSettings });
  // What is wrong for all of them is told once, before any is started.
  processConfig(values, "gateway", terminal);
  const { DATA_DIR, MONGODB_URI, LAME_DUCK: lameDuckMs } = values;
  const endsWithParent = given.npm_lifecycle_event !== undefined;
  return { environment, dataDir: MONGODB_URI ? undefined : DATA_DIR, endsWithParent, lameDuckMs };
}

/** Makes the data directory if need be, and tries whether it can be written. Throws `ConfigError`. */
export async function checkDataDir(dataDir: string): Promise<void> {
  const probe = join(dataDir, `.probe-${process.pid}`);
  try {
    await mkdir(dataDir, { recursive: true });
    await writeFile(probe, "can this be written?\n");
    await rm(probe);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError([
      `DATA_DIR=${dataDir} can't be written (${code}): make room or give this user access, or choose another directory.`,
    ]);
  }
}
