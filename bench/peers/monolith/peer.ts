import { join } from "node:path";
import type { Peer } from "../../peer.ts";
import { startNode, together } from "../../programs.ts";

/** What most teams would write first: one process, Fastify and the MongoDB driver. */
export const peer: Peer = monolith("monolith", "Fastify + mongodb, one process", {});

/** The same program with other settings. */
export function monolith(name: string, title: string, settings: Readonly<Record<string, string>>): Peer {
  return {
    name,
    title,
    data: "plain",
    async start({ mongoUrl, database, port }) {
      const env = { NODE_ENV: "production", MONGO_URL: mongoUrl, DATABASE: database, PORT: `${port}`, ...settings };
      const program = await startNode(join(import.meta.dirname, "main.ts"), env);
      return together(`http://127.0.0.1:${port}`, [program]);
    },
  };
}
