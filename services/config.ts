/** What a service reads from its environment. */
import { type Environment, optional, readEnvironment, type Secret, text } from "@petstore/runtime/environment";
import { type ProcessConfig, processConfig, processSettings, type ServiceName, storeSettings } from "../config.ts";

export interface ServiceConfig extends ProcessConfig {
  readonly name: ServiceName;
  /** The directory of the embedded store, used unless `mongodbUri` is set. */
  readonly dataDir: string;
  readonly mongodbUri: Secret | undefined;
  /** How long what changes told is kept, in milliseconds, for those who read on later. */
  readonly eventsRetentionMs: number;
  /** Only for tests of crashes: the process kills itself (SIGKILL) when it reaches the point of this name. */
  readonly crashAt: string | undefined;
}

const serviceSettings = {
  CRASH_AT: optional(text),
};

/** The configuration of one service. `terminal` says whether the log goes to one. Throws `ConfigError`. */
export function serviceConfig(
  environment: Environment,
  name: ServiceName,
  terminal = process.stdout.isTTY === true,
): ServiceConfig {
  const values = readEnvironment(environment, { ...processSettings, ...storeSettings, ...serviceSettings });
  return {
    ...processConfig(values, name, terminal),
    name,
    dataDir: values.DATA_DIR,
    mongodbUri: values.MONGODB_URI,
    eventsRetentionMs: values.EVENTS_RETENTION,
    crashAt: values.CRASH_AT,
  };
}
