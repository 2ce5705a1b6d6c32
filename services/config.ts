/** What a service reads from its environment. */
import { type Environment, optional, readEnvironment, type Secret, text } from "@petstore/runtime/environment";
import { type InForce, misspelledIn, settingsInForce, type Warning } from "@petstore/runtime/settings";
import {
  type ProcessConfig,
  processConfig,
  processSettings,
  storeSettings,
  storeWarnings,
} from "../processes/config.ts";
import type { AdminPorts, ServiceName } from "../processes/names.ts";
import { RETENTION } from "./records/retention.ts";

export interface ServiceConfig extends ProcessConfig {
  readonly name: ServiceName;
  /** The directory of the embedded store, used unless `mongodbUri` is set. */
  readonly dataDir: string;
  readonly mongodbUri: Secret | undefined;
  /** Where the admin ports of the whole petstore are. */
  readonly adminPorts: AdminPorts;
  /** How long change events are kept for readers that resume, in milliseconds. */
  readonly eventsRetentionMs: number;
  /** For crash tests only: the failpoint at which the process kills itself (SIGKILL). */
  readonly crashAt: string | undefined;
  readonly settings: Readonly<Record<string, InForce>>;
}

const settings = { ...processSettings, ...storeSettings, CRASH_AT: optional(text) };

/** What has no effect in an environment, though it looks as if it should. */
export const serviceWarnings = (environment: Environment): readonly Warning[] => [
  ...misspelledIn(environment, settings),
  ...storeWarnings(environment),
];

/** The configuration of one service. `terminal`: whether the log goes to a terminal. Throws `ConfigError`. */
export function serviceConfig(
  environment: Environment,
  name: ServiceName,
  terminal = process.stdout.isTTY === true,
): ServiceConfig {
  const values = readEnvironment(environment, settings);
  const { PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT } = values;
  return {
    ...processConfig(values, name, terminal),
    name,
    dataDir: values.DATA_DIR,
    mongodbUri: values.MONGODB_URI,
    adminPorts: { PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT },
    eventsRetentionMs: values.EVENTS_RETENTION ?? RETENTION.eventsMs,
    crashAt: values.CRASH_AT,
    settings: settingsInForce(environment, settings),
  };
}
