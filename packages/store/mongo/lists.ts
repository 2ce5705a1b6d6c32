/**
 * Lists: those who ask for the same share one, and short ones that are asked for in one tick of the event loop, or while two
 * queries are under way, travel together. A list that was sent is joined by nobody, for it may be older than what a later caller
 * was told.
 */
import { createBatcher } from "../engine/batcher.ts";
import type { Scan } from "../engine/indexes.ts";
import type { Database, Raw } from "./database.ts";
import { withPatience } from "./deadline.ts";
import { isShort, listEach } from "./list-queries.ts";

/** Lists in one query: all wait for the last of them. */
const MAX_BATCH = 8;
/** Characters of what each asks for: together they are far below the 16 MiB of a command. */
const MAX_KEY = 1_000;

/** One of the two queries of short lists that may be under way: MongoDB works on one while the answer of the other is read. */
interface Lane {
  /** Lists that have not been sent. */
  unsent: number;
  isUnderWay: boolean;
}

type Page = readonly Uint8Array[];

interface Asked extends PromiseWithResolvers<Page> {
  readonly key: string;
  readonly scan: Scan;
}

/** Resolves to the same array for all that share a list. */
export type List = (scan: Scan) => Promise<Page>;

export function createLists(database: Database, raw: Raw): List {
  /** What was not sent yet. */
  let waiting = new Map<string, Asked>();
  const lanes = Array.from({ length: 2 }, (): Lane => ({ unsent: 0, isUnderWay: false }));

  /** One that waits for nothing as long as there is room, so that what can be together is. */
  function laneForOne(): Lane {
    const free = lanes.find(({ unsent, isUnderWay }) => !isUnderWay && unsent < MAX_BATCH);
    const lane = free ?? lanes.reduce((a, b) => (b.unsent < a.unsent ? b : a));
    lane.unsent++;
    return lane;
  }

  async function send(batch: readonly Asked[]): Promise<void> {
    for (const { key } of batch) waiting.delete(key);
    if (waiting.size === 0) waiting = new Map(); // as in a batcher
    try {
      const pages = await listEach(
        database,
        raw.collectionName,
        batch.map(({ scan }) => scan),
      );
      for (const [i, { resolve }] of batch.entries()) resolve(pages[i] as Page);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  /** Batches of a lane, and of a long list by its own key. */
  const enter = createBatcher<Lane | string, Asked>(async (key, batch) => {
    const lane = typeof key === "string" ? undefined : key;
    if (lane) {
      lane.unsent -= batch.length;
      lane.isUnderWay = true;
    }
    await withPatience(send(batch));
    if (lane) lane.isUnderWay = false;
    return [];
  }, MAX_BATCH);

  return (scan) => {
    const key = JSON.stringify(scan);
    const same = waiting.get(key);
    if (same) return same.promise;
    const asked: Asked = { key, scan, ...Promise.withResolvers<Page>() };
    waiting.set(key, asked);
    // Short lists wait for one another. A long one is waited for by nobody but those who ask for the same.
    enter(isShort(scan) && key.length <= MAX_KEY ? laneForOne() : key, asked);
    return asked.promise;
  };
}
