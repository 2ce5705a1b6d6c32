import type { Place, RunningPeer } from "../peer.ts";
import { type Environment, type Program, together } from "../programs.ts";

const NAMES = ["gateway", "pet", "category", "order", "inventory"];

/** Starts a gateway and four services by their names. Their environment has the addresses of all of them and of the data. */
export async function startServices(
  { mongoUrl, database, port }: Place,
  start: (name: string, env: Environment) => Promise<Program>,
): Promise<RunningPeer> {
  const addresses = NAMES.map((name, i) => [`${name.toUpperCase()}_ADDR`, `127.0.0.1:${port + i}`]);
  const env = { ...Object.fromEntries(addresses), MONGODB_URI: mongoUrl, MONGODB_DATABASE: database };
  return together(`http://127.0.0.1:${port}`, await Promise.all(NAMES.map((name) => start(name, env))));
}
