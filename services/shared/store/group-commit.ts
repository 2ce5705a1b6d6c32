/**
 * Group commit: all that is written in one turn of the event loop shares one transaction, and so one sync of the disk.
 * Nothing is answered before the transaction that it wrote to, or saw, is committed.
 */
import { Unavailable } from "./port.ts";

export interface Transactions {
  exec(sql: string): void;
  readonly isTransaction: boolean;
}

export interface GroupCommit {
  /** Runs a step at once, and answers when the batch that was open after it is on disk. */
  run<R>(step: () => R): Promise<R>;
  /** Runs a statement in the batch of this turn. Only within a step, at most once. */
  write<R>(statement: () => R): R;
  /** Runs a transaction of its own between two batches; rolled back when it throws. */
  alone<R>(transaction: () => R): Promise<R>;
  /** Refuses everything from now on, and resolves when the open batch is over. */
  stop(): Promise<void>;
}

/**
 * A write, commit or sync that fails leaves open what is on disk, so nothing that is asked later could be answered
 * truthfully. `onFatal` is then called, once, and has to end the process: the next start finds out.
 */
export function groupCommit(db: Transactions, onFatal: (error: unknown) => void): GroupCommit {
  let batch: Promise<void> | undefined;
  let writes = 0;
  let refusal: unknown;
  let failed = false;

  function fail(error: unknown): void {
    refusal = error;
    failed = true;
    onFatal(error);
  }

  function refuseWhenStopped(): void {
    if (refusal !== undefined) throw new Unavailable(false, refusal);
  }

  function begin(): void {
    db.exec("BEGIN IMMEDIATE");
    const committed = Promise.withResolvers<void>();
    committed.promise.catch(() => {});
    batch = committed.promise;
    setImmediate(() => {
      batch = undefined;
      try {
        commit();
        committed.resolve();
      } catch (error) {
        committed.reject(error);
      }
    });
  }

  function commit(): void {
    if (failed) throw refusal;
    try {
      db.exec("COMMIT");
    } catch (error) {
      fail(error);
      throw error;
    }
  }

  return {
    async run(step) {
      refuseWhenStopped();
      const before = writes;
      try {
        return step();
      } finally {
        // What was seen or thrown is only true if the batch that it came from is.
        const wrote = writes > before;
        await batch?.catch((cause) => Promise.reject(new Unavailable(wrote, cause)));
      }
    },

    write(statement) {
      writes++;
      try {
        if (!batch) begin();
        return statement();
      } catch (error) {
        fail(error);
        throw new Unavailable(true, error);
      }
    },

    async alone(transaction) {
      while (batch) await batch.catch(() => {});
      refuseWhenStopped();
      db.exec("BEGIN IMMEDIATE");
      let result: ReturnType<typeof transaction>;
      try {
        result = transaction();
      } catch (error) {
        if (db.isTransaction) db.exec("ROLLBACK");
        throw error;
      }
      commit();
      return result;
    },

    async stop() {
      refusal ??= new Error("the store is closed");
      await batch?.catch(() => {});
    },
  };
}
