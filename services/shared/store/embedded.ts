/**
 * The engine that needs no server: SQLite keeps the documents, as BSON, in one file that one process has open. An answer
 * leaves when what it says is on disk.
 */
import type { Deps } from "../deps.ts";
import { openFailure, openFile, readFailure } from "./embedded-file.ts";
import { embeddedTable, prepareTable } from "./embedded-table.ts";
import { groupCommit } from "./group-commit.ts";
import { type Engine, localStore } from "./local-store.ts";
import type { Store } from "./port.ts";
import { reporting } from "./readable.ts";

export interface EmbeddedOptions extends Pick<Deps, "clock"> {
  readonly log: Pick<Deps["log"], "error">;
  /** A write failed in a way that leaves open what is on disk: the process has to end. Called once. */
  readonly onFatal: (error: unknown) => void;
}

/**
 * Opens or creates the store in the file `path`. Throws `StoreLocked`, `NewerFormat`, `NotWritable` or `Corrupt`, with a
 * message for the operator.
 */
export async function openEmbedded(path: string, { clock, log, onFatal }: EmbeddedOptions): Promise<Store> {
  const db = openFile(path);
  const commit = groupCommit(db, onFatal);
  const increment = db.prepare(
    `INSERT INTO "$sequences" VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET last = last + 1 RETURNING last`,
  );

  const reading = <R>(step: () => R): R => {
    try {
      return step();
    } catch (error) {
      throw readFailure(error, path);
    }
  };

  const engine: Engine = {
    run: (step) => commit.run(() => reading(step)),
    async table(declaration) {
      const prepared = commit.alone(() => prepareTable(db, declaration));
      await prepared.catch((error) => Promise.reject(openFailure(error, path)));
      return embeddedTable(db, declaration, commit.write);
    },
    next: (sequence) => commit.write(() => (increment.get(sequence) as { last: number }).last),
    async close() {
      await commit.stop();
      if (db.isOpen) db.close();
    },
  };
  return localStore(engine, clock, reporting(log, clock));
}
