/** Finds, chooses and prepares the peers. */
import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Peer } from "../peer.ts";

const FOLDER = join(import.meta.dirname, "../peers");

/** The order in tables: first the peers to compare with, then ours, then those that explain the difference. */
const ORDER = [
  "monolith",
  "nest",
  "go",
  "petstore-one-process",
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

/** Prepares the peers. Returns those that can run, and for the others the reasons why they can't. */
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

/** Returns the reason if it fails, such as a peer that has to be built and a missing network. */
async function prepare(peer: Peer, progress: (text: string) => void): Promise<string | undefined> {
  try {
    await peer.prepare?.(progress);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
