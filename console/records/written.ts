/** The page's own writes. */
import { type ErrorCode, PetstoreError } from "@petstore/client";
import { liveState } from "../live/state.ts";
import { type Kind, type Kinds, missed, tell } from "./changes.ts";

/** When to read again after a write, in milliseconds. A pet's status follows its stock, within 250 ms on most machines. */
const SETTLED_MS = [400, 3_000];

/**
 * Passes on a written record at once. If no live events come, what is shown is read again later, for the write's consequences.
 */
export function written<K extends Kind>(kind: K, record: Kinds[K], isDeleted = false): void {
  tell({ kind, record, isDeleted, isOwn: true });
  if (liveState.value === "live") return;
  for (const ms of SETTLED_MS) setTimeout(() => missed.value++, ms);
}

/** Resolves when a record is deleted, also if somebody else has deleted it. `code` is what the petstore says then. */
export const unlessGone = (deletion: Promise<unknown>, code: ErrorCode): Promise<unknown> =>
  deletion.catch((thrown: unknown) => {
    if (!(thrown instanceof PetstoreError) || thrown.code !== code) throw thrown;
  });
