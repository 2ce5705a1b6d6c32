/** What a service reads from its environment. */
import { type Environment, optional, readEnvironment, text } from "@petstore/runtime/environment";
import { misspelledIn, settingsInForce, type Warning } from "@petstore/runtime/settings";
import { processConfig, processSettings, storeSettings, storeWarnings } from "../processes/config.ts";
import type { ServiceName } from "../processes/names.ts";
import { RETENTION } from "./records/retention.ts";

export type ServiceConfig = Readonly<ReturnType<typeof serviceConfig>>;

const settings = { ...processSettings, ...storeSettings, CRASH_AT: optional(text) };

/** What has no effect in an environment, though it looks as if it should. */
export const serviceWarnings = (environment: Environment): readonly Warning[] => [
  ...misspelledIn(environment, settings),
  ...storeWarnings(environment),
];

/** The configuration of one service. `terminal`: whether the log goes to a terminal. Throws `ConfigError`. */
export function serviceConfig(environment: Environment, name: ServiceName, terminal = process.stdout.isTTY === true) {
  const values = readEnvironment(environment, settings);
  const { PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT } = values;
  return {
    ...processConfig(values, name, terminal),
    name,
    /** The directory of the embedded store, used unless `mongodbUri` is set. */
    dataDir: values.DATA_DIR,
    mongodbUri: values.MONGODB_URI,
    /** Where the admin ports of the whole petstore are. */
    adminPorts: { PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT },
    /** How long change events are kept for readers that resume, in milliseconds. */
    eventsRetentionMs: values.EVENTS_RETENTION ?? RETENTION.eventsMs,
    /** For crash tests only: the failpoint at which the process kills itself (SIGKILL). */
    crashAt: values.CRASH_AT,
    settings: settingsInForce(environment, settings),
  };
}
