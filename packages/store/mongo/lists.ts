/**
 * Lists: those who ask for the same share one, and short ones that are asked for in one tick of the event loop, or while two
 * queries are under way, travel together. A list that was sent is joined by nobody, for it may be older than what a later caller
 * was told.
 */
import { createBatcher } from "../engine/batcher.ts";
import type { Scan } from "../engine/indexes.ts";
import { Unavailable } from "../port.ts";
import type { Database, Raw } from "./database.ts";
import { type Call, withPatience } from "./deadline.ts";
import { isShort, listEach } from "./list-queries.ts";

/** Lists in one query: all wait for the last of them. */
const MAX_BATCH = 8;
/** Queries of short lists under way at once: MongoDB works on one while the answer of the other is read. */
const QUERIES = 2;
/** Characters of what each asks for: together they are far below the 16 MiB of a command. */
const MAX_KEY = 1_000;

/** What all short lists are gathered by. A long one is its own key, which is JSON. */
const SHORT = "short";

type Page = readonly Uint8Array[];

interface Asked extends PromiseWithResolvers<Page> {
  readonly key: string;
  readonly scan: Scan;
  /** Whose time is over does not wait any more. */
  readonly calls: Pick<Call, "isOver">[];
}

/** Resolves to the same array for all that share a list. What nobody waits for any more when its turn comes is not sent. */
export type List = (scan: Scan, call: Pick<Call, "isOver">) => Promise<Page>;

export function createLists(database: Database, raw: Raw): List {
  /** What was not sent yet. */
  let waiting = new Map<string, Asked>();

  async function send(all: readonly Asked[]): Promise<void> {
    for (const { key } of all) waiting.delete(key);
    if (waiting.size === 0) waiting = new Map(); // as in a batcher
    const batch: Asked[] = [];
    for (const asked of all)
      if (asked.calls.some(({ isOver }) => !isOver)) batch.push(asked);
      else asked.reject(new Unavailable(false));
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

  const enter = createBatcher<string, Asked>(
    async (_, batch) => {
      await withPatience(send(batch));
      return [];
    },
    MAX_BATCH,
    QUERIES,
  );

  return (scan, call) => {
    const key = JSON.stringify(scan);
    const same = waiting.get(key);
    if (same) {
      same.calls.push(call);
      return same.promise;
    }
    const asked: Asked = { key, scan, calls: [call], ...Promise.withResolvers<Page>() };
    waiting.set(key, asked);
    // Short lists wait for one another. A long one is waited for by nobody but those who ask for the same.
    enter(isShort(scan) && key.length <= MAX_KEY ? SHORT : key, asked);
    return asked.promise;
  };
}
