/** What the doctor reads from its environment: where the petstore and its data are, and what is wrong with the rest. */
import { ConfigError, type Environment, readEnvironment } from "@petstore/runtime/environment";
import { gatewayConfig } from "../gateway/config.ts";
import { launcherConfig, launcherWarnings } from "../launcher/config.ts";
import { processSettings, storeSettings } from "../processes/config.ts";
import { addressSettings } from "../processes/names.ts";

const { HOST, PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT } = processSettings;
const settings = { ...storeSettings, ...addressSettings, HOST, PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT };

export type DoctorConfig = ReturnType<typeof doctorConfig>;

/** Throws `ConfigError`. */
export function doctorConfig(environment: Environment) {
  const values = readEnvironment(environment, settings);
  const { PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT } = values;
  return {
    environment,
    dataDir: values.DATA_DIR,
    mongodbUri: values.MONGODB_URI,
    host: values.HOST,
    portBase: PORT_BASE,
    replicas: REPLICAS,
    adminPorts: { PORT_BASE, REPLICAS, ADMIN_HOST, ADMIN_PORT },
    /** Whether services are reached elsewhere than at the ports beside PORT_BASE. */
    isSpread: Object.keys(addressSettings).some((name) => environment[name]?.trim()),
  };
}

/**
 * What would keep the petstore from starting with this environment, or has no effect in it, in sentences. PORT, which the
 * image sets, is for the one process of a container.
 */
export function configurationProblems({ PORT: _, ...environment }: Environment): string[] {
  const warnings = launcherWarnings(environment);
  const problems = [
    () => launcherConfig(environment, false, { warnings }),
    () => gatewayConfig({ ...environment, INTERNAL_SECRET: environment.INTERNAL_SECRET ?? "x".repeat(64) }, false),
  ].flatMap((read) => {
    try {
      read();
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.message.split("\n");
      throw error;
    }
  });
  return [...new Set([...problems, ...warnings.map(({ text }) => text)])];
}
