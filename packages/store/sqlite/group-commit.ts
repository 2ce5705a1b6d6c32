/**
 * Group commit: changes that are requested in one tick of the event loop, or while the disk is being synced, share one
 * transaction, and so one sync. Neither these changes nor reads that saw them are answered before they are on disk.
 * How it is synced is in file.ts.
 */

import type { DatabaseSync } from "node:sqlite";
import { MAX_FOLD_MS } from "../document/fold.ts";
import { createBatcher, type Waiting } from "../engine/batcher.ts";
import type { Batch } from "../engine/table-store.ts";
import type { Clock } from "../open.ts";
import { Full, Unavailable } from "../port.ts";
import { isFull } from "./failures.ts";

export interface GroupCommitOptions {
  readonly clock: Clock;
  /** Resolves when all that was committed before the call is on disk. */
  readonly sync: () => Promise<void>;
  /** Called when there is no room any more, and when there is room again. */
  readonly onRoom: (room: "none" | "again", error?: unknown) => void;
  /** Called once, and has to end the process. */
  readonly onFatal: (error: unknown) => void;
}

interface Step extends Waiting<unknown> {
  readonly run: (batch: Batch) => unknown;
}

/** The statements of a batch, each with what to call when it is on disk. */
type Writes = Map<() => void, (() => void) | undefined>;

/** A step that has run, and how it is answered once its outcome is certain. */
interface Ran extends Step {
  readonly isWrite: boolean;
  readonly answer: () => void;
}

/**
 * A transaction that finds no room has no effect and is rolled back. After any other failure of a write, a commit or a
 * sync it is unknown what is on disk, so no later call could be answered truthfully: the process has to end, and the next
 * start finds out.
 */
export function groupCommit(
  db: Pick<DatabaseSync, "exec" | "isTransaction">,
  { clock, sync, onRoom, onFatal }: GroupCommitOptions,
) {
  let refusal: unknown;
  let hasFailed = false;
  let hasRoom = true;
  /** The sync that is under way: until it is over, what is committed may be lost. */
  let syncing: Promise<void> | undefined;
  /** Resolves when commits may go on. */
  let held: PromiseWithResolvers<void> | undefined;

  function refuseWhenStopped(): void {
    if (refusal !== undefined) throw new Unavailable(false, refusal);
  }

  /** Runs as many of the steps as fit into MAX_FOLD_MS, but at least one. */
  function runSteps(steps: readonly Step[]): { ran: Ran[]; writes: Writes } {
    const until = clock() + MAX_FOLD_MS;
    const ran: Ran[] = [];
    const writes: Writes = new Map();
    for (const step of steps) {
      if (ran.length > 0 && clock() >= until) break;
      let isWrite = false;
      const batch: Batch = {
        key: writes,
        write(statement, made) {
          isWrite = true;
          writes.set(statement, made);
        },
      };
      let answer: () => void;
      try {
        const result = step.run(batch);
        answer = () => step.resolve(result);
      } catch (error) {
        answer = () => step.reject(error);
      }
      ran.push({ ...step, isWrite, answer });
    }
    return { ran, writes };
  }

  function commit(writes: Writes): void {
    db.exec("BEGIN IMMEDIATE");
    for (const statement of writes.keys()) statement();
    db.exec("COMMIT");
    if (!hasRoom) onRoom("again");
    hasRoom = true;
  }

  /** Rolls back a transaction that found no room. False when it is committed, or unknown what is on disk. */
  function isUndone(error: unknown): boolean {
    if (syncing || !isFull(error)) return false;
    try {
      if (db.isTransaction) db.exec("ROLLBACK");
      return true;
    } catch {
      return false;
    }
  }

  const enter = createBatcher<"all", Pick<Step, "run">, unknown>(async (_, steps) => {
    if (held) await held.promise;
    if (hasFailed) {
      for (const { reject } of steps) reject(new Unavailable(false, refusal));
      return [];
    }
    const { ran, writes } = runSteps(steps);
    try {
      if (writes.size > 0) {
        commit(writes);
        syncing = sync();
        await syncing;
        syncing = undefined;
        for (const made of writes.values()) made?.();
      }
      for (const { answer } of ran) answer();
    } catch (error) {
      // Results of steps that changed nothing are withheld as well: they may rest on changes of this batch.
      const undone = isUndone(error);
      for (const { isWrite, reject } of ran) reject(undone ? new Full(error) : new Unavailable(isWrite, error));
      if (undone) {
        if (hasRoom) onRoom("none", error);
        hasRoom = false;
      } else fail(error);
    }
    return steps.slice(ran.length);
  });

  function fail(error: unknown): void {
    if (hasFailed) return;
    refusal = error;
    hasFailed = true;
    onFatal(error);
  }

  return {
    /** Runs a step that changes no document, at once, and answers when what it saw is on disk. */
    async read<R>(step: () => R): Promise<R> {
      refuseWhenStopped();
      const result = step();
      await syncing?.catch((error) => Promise.reject(new Unavailable(false, error)));
      return result;
    },

    /** Runs a step at the end of this tick, and answers when what it changed is on disk. */
    async write<R>(step: (batch: Batch) => R): Promise<R> {
      refuseWhenStopped();
      return enter("all", { run: step }) as Promise<R>;
    },

    /** Begins no further commit until `release`: whoever changes something waits. None is half made when this returns. */
    hold(): void {
      held ??= Promise.withResolvers();
    },
    release(): void {
      held?.resolve();
      held = undefined;
    },

    /** Answers nothing more, because it is unknown what is on disk. */
    fail,

    /** Refuses every new call, and resolves when all earlier calls are answered and the step `last` has run. */
    async stop(last: (batch: Batch) => void = () => {}): Promise<void> {
      refusal ??= new Error("the store is closed");
      await enter("all", { run: last }).catch(() => {}); // earlier calls are answered first
    },
  };
}
