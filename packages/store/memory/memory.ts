/** An engine in memory, for unit tests and simulations. It answers like the others; nothing outlives the process. */

import { setImmediate as turn } from "node:timers/promises";
import { compareIds, type Fields, peek } from "../document/codec.ts";
import type { PrefixScan, Report, Scan } from "../engine/queries.ts";
import type { ChangeLog, LogEntry } from "../engine/table-changes.ts";
import { type Table, type TableEngine, tableStore } from "../engine/table-store.ts";
import type { Clock } from "../open.ts";
import { type Id, type Key, type Store, Unavailable } from "../port.ts";
import type { Row } from "../rows.ts";

/** What a disk would hold. A store that is opened on the data of an earlier one finds everything again. */
export interface MemoryData {
  readonly collections: Map<string, Map<Id, Uint8Array>>;
  readonly sequences: Map<string, number>;
  readonly changes: Map<string, LogEntry[]>;
}
export const emptyData = (): MemoryData => ({ collections: new Map(), sequences: new Map(), changes: new Map() });

export const copyData = ({ collections, sequences, changes }: MemoryData): MemoryData => ({
  collections: new Map([...collections].map(([name, documents]) => [name, new Map(documents)])),
  sequences: new Map(sequences),
  changes: new Map([...changes].map(([name, entries]) => [name, [...entries]])),
});

export interface MemoryOptions {
  readonly data?: MemoryData;
  /** Without one, no deadline ever passes. */
  readonly clock?: Clock;
  readonly report?: Report;
}

export function openMemory({ data = emptyData(), clock = () => 0, report = () => {} }: MemoryOptions = {}): Store {
  let closed = false;
  const refuseWhenClosed = () => {
    if (closed) throw new Unavailable(false, new Error("the store is closed"));
  };
  const engine: TableEngine = {
    async read(step) {
      refuseWhenClosed();
      return step();
    },
    // Each step is a batch of its own, so that a simulation can try every order of steps.
    async write(step) {
      refuseWhenClosed();
      const statements: (() => void)[] = [];
      const write = (statement: () => void, made = () => {}) => void statements.push(statement, made);
      const result = step({ key: statements, write });
      for (const statement of statements) statement();
      return result;
    },
    async table({ name, shown }) {
      refuseWhenClosed();
      const documents = data.collections.get(name) ?? new Map<Id, Uint8Array>();
      data.collections.set(name, documents);
      if (!shown) return memoryTable(documents);
      const entries = data.changes.get(name) ?? [];
      data.changes.set(name, entries);
      return { ...memoryTable(documents), log: memoryLog(entries) };
    },
    next(sequence, _, above = 0) {
      const next = Math.max(data.sequences.get(sequence) ?? 0, above) + 1;
      data.sequences.set(sequence, next);
      return next;
    },
    async close() {
      closed = true;
    },
  };
  return tableStore(engine, { clock, sleep: () => turn(), report });
}

function memoryTable(documents: Map<Id, Uint8Array>): Table {
  /** What lists look for, of the bytes that were written here. */
  const written = new WeakMap<Uint8Array, Fields>();
  const fieldsOf = (bytes: Uint8Array): Fields => written.get(bytes) ?? peek(bytes);
  return {
    get: (id) => documents.get(id),
    put(id, bytes, doc) {
      written.set(bytes, doc);
      documents.set(id, bytes);
    },
    delete: (id) => void documents.delete(id),
    list({ match, after, limit, order }: Scan) {
      const direction = order === "asc" ? 1 : -1;
      const isMatch = (bytes: Uint8Array) => {
        const doc = fieldsOf(bytes);
        return match?.fields.every((field, i) => match.values[i]?.includes(doc[field] as Key)) ?? true;
      };
      return [...documents]
        .filter(([id]) => after === undefined || compareIds(id, after) * direction > 0)
        .sort(([a], [b]) => compareIds(a, b) * direction)
        .filter(([, bytes]) => isMatch(bytes))
        .slice(0, limit)
        .map(([_id, doc]) => ({ _id, doc }));
    },
    listByPrefix({ field, prefix, after, limit }: PrefixScan) {
      const isBeyond = ({ key, _id }: Found) =>
        !after || (compareIds(key, after.key) || compareIds(_id, after._id)) > 0;
      return [...documents]
        .flatMap(([_id, doc]): Found[] => {
          const key = fieldsOf(doc)[field];
          return typeof key === "string" && key.startsWith(prefix) ? [{ key, _id, doc }] : [];
        })
        .filter(isBeyond)
        .sort((a, b) => compareIds(a.key, b.key) || compareIds(a._id, b._id))
        .slice(0, limit);
    },
  };
}
interface Found extends Row {
  readonly key: string;
}

/** The numbers of the entries have no gaps. */
function memoryLog(entries: LogEntry[]): ChangeLog {
  const indexOf = (number: number) => number - (entries[0]?.number ?? 1);
  return {
    last: () => entries.at(-1),
    timeOf: (number) => entries[indexOf(number)]?.at,
    after: (number, limit) => entries.slice(Math.max(0, indexOf(number + 1))).slice(0, limit),
    append(at, change) {
      const number = (entries.at(-1)?.number ?? 0) + 1;
      entries.push({ number, at, change });
      return number;
    },
    forget(before, limit) {
      const young = entries.findIndex(({ at }) => at >= before);
      const old = young < 0 ? entries.length : young;
      return entries.splice(0, Math.max(0, Math.min(limit, old - 1))).length;
    },
  };
}
