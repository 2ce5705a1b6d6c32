/**
 * Lists. Callers that request the same list share it, and short lists that are requested in one tick of the event loop,
 * or while two queries are under way, share a query. No caller joins a query that was sent before, because its answer may
 * be older than what that caller has seen.
 */
import { createBatcher } from "../engine/batcher.ts";
import type { Scan } from "../engine/indexes.ts";
import { Unavailable } from "../port.ts";
import type { Database, Raw } from "./database.ts";
import { type Call, withPatience } from "./deadline.ts";
import { isShort, listEach } from "./list-queries.ts";

/** Most lists in one query; all wait for the last of them. */
const MAX_BATCH = 8;
/** Queries of short lists under way at once: MongoDB works on one while the answer of the other is read. */
const QUERIES = 2;
/** Most characters in the key of a short list: together the keys are far below the 16 MiB of a command. */
const MAX_KEY = 1_000;

/** The batch key of all short lists. A long list has its own, which is JSON. */
const SHORT = "short";

type Page = readonly Uint8Array[];

interface Asked extends PromiseWithResolvers<Page> {
  readonly key: string;
  readonly scan: Scan;
  /** The calls that wait. One whose time is over does not count any more. */
  readonly calls: Pick<Call, "isOver">[];
}

/**
 * Resolves to the same array for all callers that share a list. A list that nobody waits for any more when its turn comes
 * is not sent.
 */
export type List = (scan: Scan, call: Pick<Call, "isOver">) => Promise<Page>;

export function createLists(database: Database, raw: Raw): List {
  /** Lists that were not sent yet, by key. */
  let waiting = new Map<string, Asked>();

  async function send(all: readonly Asked[]): Promise<void> {
    for (const { key } of all) waiting.delete(key);
    if (waiting.size === 0) waiting = new Map(); // for the reason given in batcher.ts
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
    // Short lists wait for one another. Only callers of the same long list wait for a long one.
    enter(isShort(scan) && key.length <= MAX_KEY ? SHORT : key, asked);
    return asked.promise;
  };
}
