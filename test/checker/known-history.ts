/** Builds a history where nothing saw every write. */
import type { Shown } from "../workload/perform.ts";
import type { Write } from "./events.ts";
import { type CollectionName, type State, writeOf } from "./state.ts";

/**
 * All that a GET is known to have been able to show, in the order of each record: first what clients and watchers were shown,
 * then what is stored in the end. So all watchers must get what one of them got, and nothing can be newer than the end.
 */
export function knownHistory(shown: readonly Shown[], state: State): Write[] {
  const ends = (Object.entries(state) as [CollectionName, ReadonlyMap<number, never>][]).flatMap(([collection, docs]) =>
    [...docs.values()].map((doc) => writeOf(collection, doc)),
  );
  const records = Map.groupBy<string, Write>(
    [...shown.map((one) => ({ kind: one.kind, id: one.id, shown: one })), ...ends],
    ({ kind, id }) => `${kind} ${id}`,
  );
  const isEnd = new Set(ends);
  return [...records.values()].flatMap((writes): Write[] => {
    const last = writes.at(-1) as Write;
    const end = isEnd.has(last) ? last : { ...last, shown: undefined };
    const versions = new Map(writes.map((write) => [write.shown?.version ?? 0, write]));
    for (const gone of [0, end.shown?.version ?? 0]) versions.delete(gone);
    return [...[...versions].sort(([a], [b]) => a - b).map(([, write]) => write), end];
  });
}
