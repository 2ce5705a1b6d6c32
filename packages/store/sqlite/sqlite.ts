/**
 * The engine that needs no server: SQLite keeps the documents, as BSON, in one file that one process has open. An answer
 * leaves when what it says is on disk.
 */

import type { DatabaseSync } from "node:sqlite";
import { reporting } from "../document/corrupt.ts";
import type { EngineContext } from "../engine/context.ts";
import { type Batch, type TableEngine, tableStore } from "../engine/table-store.ts";
import type { Store } from "../port.ts";
import { isFull, openFailure, openFile, openLog, readFailure } from "./file.ts";
import { groupCommit } from "./group-commit.ts";
import { embeddedTable, prepareTable } from "./table.ts";

export interface EmbeddedOptions extends Pick<EngineContext, "clock"> {
  readonly log: Pick<EngineContext["log"], "error" | "warn">;
  /** A write failed in a way that leaves open what is on disk: the process has to end. Called once. */
  readonly onFatal: (error: unknown) => void;
}

/**
 * Opens or creates the store in the file `path`. Throws `StoreLocked`, `UnsupportedFormat`, `NotWritable` or `Corrupt`, with a
 * message for the operator.
 */
export async function openEmbedded(path: string, options: EmbeddedOptions): Promise<Store> {
  return embeddedStore(openFile(path), path, options);
}

/** The store in an open file, which it closes. */
export function embeddedStore(
  db: DatabaseSync,
  path: string,
  { clock, log, onFatal }: EmbeddedOptions,
  writeAheadLog = openLog(db, path),
): Store {
  const commit = groupCommit(db, {
    clock,
    sync: writeAheadLog.sync,
    isFull,
    onFatal,
    onRoom(room, err) {
      if (room === "again") log.warn({ path }, "there is room again: the store takes changes");
      else log.error({ err, path }, "the disk is full: until there is room, changes are refused and reads go on");
    },
  });

  const reading = <R>(step: () => R): R => {
    try {
      return step();
    } catch (error) {
      throw readFailure(error, path);
    }
  };

  const engine: TableEngine = {
    read: (step) => commit.read(() => reading(step)),
    write: (step) => commit.write((batch) => reading(() => step(batch))),
    async table(declaration) {
      const prepared = commit.alone(() => prepareTable(db, declaration));
      await prepared.catch((error) => Promise.reject(openFailure(error, path)));
      return embeddedTable(db, declaration);
    },
    next: embeddedSequences(db),
    async close() {
      await commit.stop();
      if (!db.isOpen) return;
      db.close();
      writeAheadLog.close();
    },
  };
  return tableStore(engine, clock, reporting(log, clock));
}

/** Counts in memory and stores once in a batch. What a batch took that was undone is a gap. */
function embeddedSequences(db: DatabaseSync) {
  const read = db.prepare(`SELECT last FROM "$sequences" WHERE name = ?`);
  const write = db.prepare(
    `INSERT INTO "$sequences" VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET last = excluded.last`,
  );
  const known = new Map<string, { last: number; readonly store: () => void }>();
  return (name: string, batch: Batch): number => {
    let sequence = known.get(name);
    if (!sequence) {
      const { last = 0 } = (read.get(name) ?? {}) as { last?: number };
      const counted = { last, store: () => void write.run(name, counted.last) };
      known.set(name, counted);
      sequence = counted;
    }
    batch.write(sequence.store);
    return ++sequence.last;
  };
}
