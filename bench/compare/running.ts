/** Fills and starts peers, waits until they answer, and measures their memory at rest. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { resident } from "../measure/proc.ts";
import type { Peer, Place, RunningPeer } from "../peer.ts";
import { onMongodb } from "../peers/petstore/peer.ts";
import { documentsOf } from "../seed/documents.ts";
import { fillEmbedded, fillMongodb } from "../seed/petstore.ts";
import { fillPlain } from "../seed/plain.ts";

/** Time limit for a start: longer than any peer takes on a busy machine. */
const PATIENCE_MS = 60_000;
/** How long to wait for work that a process puts off until after its start. A busy machine delays it further. */
const SETTLE_MS = 4000;

/** An id that no peer is filled with. */
const NO_PET = 999_999_999;

export interface Started extends RunningPeer {
  /** From before the start of its first process to its first answer, in milliseconds. */
  readonly readyMs: number;
}

/** Fills a peer's data. With `isOrdered`, a peer that stores the petstore's documents gets an order for each pet for sale. */
export async function fill(
  data: Peer["data"],
  place: Place,
  pets: number,
  { isOrdered = false, progress }: { readonly isOrdered?: boolean; readonly progress?: (pets: number) => void } = {},
): Promise<void> {
  const filling = {
    pets,
    documentsOf: (id: number) => documentsOf(id, isOrdered),
    lastIds: { pet: pets, order: isOrdered ? pets : 0 },
    ...(progress ? { progress } : {}),
  };
  if (data === "plain") await fillPlain(place.mongoUrl, place.database, pets);
  if (data === "petstore") await fillMongodb(onMongodb(place).MONGODB_URI as string, filling);
  if (data === "embedded") await fillEmbedded(place.dataDir, filling);
}

/** Starts a peer. Resolves when it has answered for the first time. */
export async function start(peer: Peer, place: Place): Promise<Started> {
  const startedAt = performance.now();
  const running = await peer.start(place);
  const isOver = () =>
    performance.now() - startedAt > PATIENCE_MS || running.pids.some((pid) => !existsSync(`/proc/${pid}`));
  while (!(await answers(running.url))) {
    if (isOver()) {
      await running.stop();
      throw new Error(`${peer.name} did not start: what it said stands above. Leave it out with --peers.`);
    }
    await sleep(5);
  }
  return { ...running, readyMs: performance.now() - startedAt };
}

/** Reads a pet and sends an order for a pet that does not exist: both need all processes, and neither writes anything. */
async function answers(url: string): Promise<boolean> {
  const [json, body] = [{ "content-type": "application/json" }, JSON.stringify({ petId: NO_PET, quantity: 1 })];
  const asked = [fetch(`${url}/pets/1`), fetch(`${url}/store/orders`, { method: "POST", headers: json, body })];
  const isThere = async (answer: Promise<Response>) => {
    const response = await answer;
    await response.arrayBuffer();
    return response.status < 500;
  };
  const found = await Promise.allSettled(asked.map(isThere));
  return found.every((result) => result.status === "fulfilled" && result.value);
}

/** Resident memory of all its processes at rest, in bytes. */
export async function restingMemory({ pids }: RunningPeer): Promise<number> {
  await sleep(SETTLE_MS);
  return resident(pids);
}
