/**
 * A corrupt document harms only itself: it is refused to whoever asks for it by `_id`, everything else goes on without it,
 * and the operator is told.
 */

import type { Clock, EngineContext } from "../engine/context.ts";
import { Corrupt } from "../port.ts";

/** How often one document is told of, for a list may meet it with every call; and of how many in that time. */
const REPORT_INTERVAL_MS = 3_600_000;
const MAX_REPORTED = 1_000;

/** Documents that a list may leave out. More of them are no accident, but the work of another version. */
const MAX_LEFT_OUT = 1_000;

export type Report = (error: Corrupt) => void;

/** Logs what can't be read: each document once an hour, and 1000 of them at most. */
export function reporting(log: Pick<EngineContext["log"], "error">, clock: Clock): Report {
  const told = new Set<string>();
  let since = clock();
  return (error) => {
    if (clock() >= since + REPORT_INTERVAL_MS) {
      told.clear();
      since = clock();
    }
    if (told.has(error.message) || told.size >= MAX_REPORTED) return;
    told.add(error.message);
    log.error({ err: error }, "a document that can't be read is left out");
  };
}

/** How many documents to read for a page of `limit`: first as if all were readable, then with room for those that are not. */
export const attemptsAt = (limit: number): readonly number[] => [limit, limit + MAX_LEFT_OUT];

export const tooMany = (collection: string) =>
  new Corrupt(`More than ${MAX_LEFT_OUT} documents in the way of one page of ${collection} can't be read.`);

/** What of these documents can be read. */
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
