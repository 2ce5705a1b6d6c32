/**
 * Lists. Those that ask the same share one query, as long as it was not sent: one that was sent is joined by nobody, for
 * its answer may be older than what a later caller was told. That one waits for the next, which is sent when this is back.
 */
import type { Fields } from "../document/codec.ts";
import { createBatcher } from "../engine/batcher.ts";
import type { Scan } from "../engine/indexes.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";
import { withPatience } from "./deadline.ts";

/** What an index is made of, and its hint. */
export const keyOf = (fields: readonly string[]) =>
  Object.fromEntries([...fields, "_id"].map((field) => [field, 1 as const]));

/** Resolves to the same array for all that share a query. */
export type List = (scan: Scan) => Promise<readonly Uint8Array[]>;

export function createLists(database: Database, raw: Raw): List {
  type Asked = PromiseWithResolvers<readonly Uint8Array[]> & { readonly scan: Scan };

  async function send(asked: readonly Asked[]): Promise<void> {
    const { scan } = asked[0] as Asked;
    try {
      const found = await query(database, raw, scan);
      for (const { resolve } of asked) resolve(found);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }

  const ask = createBatcher<string, Asked>(async (_, asked) => {
    await withPatience(send(asked));
    return [];
  });

  return (scan) => {
    const asked: Asked = { scan, ...Promise.withResolvers<readonly Uint8Array[]>() };
    ask(JSON.stringify(scan), asked);
    return asked.promise;
  };
}

function query(database: Database, raw: Raw, { match, after, limit, order }: Scan): Promise<Uint8Array[]> {
  // A hint can't be followed by a query that nothing can match.
  if (match?.values.some((values) => values.length === 0)) return Promise.resolve([]);
  const isBeyond: { _id?: Fields & Record<string, Id> } =
    after === undefined ? {} : { _id: order === "asc" ? { $gt: after } : { $lt: after } };
  const fields = match?.fields.map((field, i) => [field, { $in: match.values[i] }]) ?? [];
  const how = {
    hint: keyOf(match?.fields ?? []),
    sort: { _id: order === "asc" ? 1 : -1 },
    limit: Math.min(limit, 2 ** 31 - 2),
    batchSize: Math.min(limit, 2 ** 31 - 2) + 1,
  };
  const filter = { ...Object.fromEntries(fields), ...isBeyond };
  return database.inSession((session) => find(database, raw.collectionName, { filter, ...how }, { session }));
}
