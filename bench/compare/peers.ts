/** Finds the peers, chooses among them, and prepares them. */
import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Peer } from "../peer.ts";

const FOLDER = join(import.meta.dirname, "../peers");

/** In the order of tables: what is compared with first, then ours, then what explains the difference. */
const ORDER = [
  "monolith",
  "nest",
  "go",
  "petstore",
  "petstore-embedded",
  "petstore-link-off",
  "monolith-coalesced",
  "floor",
];

export function peerNames(): string[] {
  const names = globSync("*/peer.ts", { cwd: FOLDER }).map((path) => basename(dirname(path)));
  const place = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return names.sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
}

/** Those that can run, ready to be started; and why others can't. */
export async function preparePeers(names: readonly string[], progress: (text: string) => void) {
  const ready: Peer[] = [];
  const leftOut: string[] = [];
  for (const name of names) {
    const { peer } = (await import(join(FOLDER, name, "peer.ts"))) as { peer: Peer };
    const reason = peer.unavailable?.() ?? (await prepare(peer, (text) => progress(`${name}: ${text}`)));
    if (reason === undefined) ready.push(peer);
    else leftOut.push(`${name}: ${reason}`);
  }
  return { ready, leftOut };
}

/** Says why it can't be prepared, if so: without a network, one that has to be built first. */
async function prepare(peer: Peer, progress: (text: string) => void): Promise<string | undefined> {
  try {
    await peer.prepare?.(progress);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
