import type { Place, RunningPeer } from "../peer.ts";
import { type Environment, type Program, together } from "../programs.ts";

const NAMES = ["gateway", "pet", "category", "order", "inventory"];

/** Starts a gateway and four services by their names. The environment tells each where all are, and where the data is. */
export async function startServices(
  { mongoUrl, database, port }: Place,
  start: (name: string, env: Environment) => Promise<Program>,
): Promise<RunningPeer> {
  const addresses = NAMES.map((name, i) => [`${name.toUpperCase()}_ADDR`, `127.0.0.1:${port + i}`]);
  const env = { ...Object.fromEntries(addresses), MONGODB_URI: mongoUrl, MONGODB_DATABASE: database };
  return together(`http://127.0.0.1:${port}`, await Promise.all(NAMES.map((name) => start(name, env))));
}
