/** A corrupt document affects only itself: access by its `_id` is refused, and it is logged for the operator. */

import type { Clock, EngineContext } from "../engine/context.ts";
import { Corrupt } from "../port.ts";

/** A document is logged once in this time, as lists may meet it with every call, and so many documents at most. */
const REPORT_INTERVAL_MS = 3_600_000;
const MAX_REPORTED = 1_000;

/** Most documents that a list may leave out. More of them are no accident, but the work of another version. */
const MAX_LEFT_OUT = 1_000;

export type Report = (error: Corrupt) => void;

/** Logs documents that can't be read: each once an hour, and at most 1,000 of them an hour. `onCorrupt` is told each time. */
export function reporting(
  log: Pick<EngineContext["log"], "error">,
  clock: Clock,
  onCorrupt: (collection: string | undefined) => void = () => {},
): Report {
  const told = new Set<string>();
  let since = clock();
  return (error) => {
    onCorrupt(error.collection);
    if (clock() >= since + REPORT_INTERVAL_MS) {
      told.clear();
      since = clock();
    }
    if (told.has(error.message) || told.size >= MAX_REPORTED) return;
    told.add(error.message);
    log.error({ err: error }, "a document that can't be read is left out");
  };
}

/** How many documents to read for a page: first as if all were readable, then with room for those that are not. */
export const attemptsAt = (limit: number): readonly number[] => [limit, limit + MAX_LEFT_OUT];

export const tooMany = (collection: string) =>
  new Corrupt(`More than ${MAX_LEFT_OUT} documents in the way of one page of ${collection} can't be read.`);

/** Reads the documents. Leaves out those that can't be read and reports them. */
export function readable<S, T>(stored: readonly S[], read: (one: S) => T, report: Report): T[] {
  return stored.flatMap((one) => {
    try {
      return [read(one)];
    } catch (error) {
      if (!(error instanceof Corrupt)) throw error;
      report(error);
      return [];
    }
  });
}
