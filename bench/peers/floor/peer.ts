import { join } from "node:path";
import type { Peer } from "../../peer.ts";
import { startNode, together } from "../../programs.ts";

/** The cost of HTTP alone: nothing can be faster on this framework. */
export const peer: Peer = {
  name: "floor",
  title: "bare Fastify, a constant",
  data: "none",
  lacks: ["orders"],
  async start({ port }) {
    const env = { NODE_ENV: "production", PORT: `${port}` };
    return together(`http://127.0.0.1:${port}`, [await startNode(join(import.meta.dirname, "main.ts"), env)]);
  },
};
