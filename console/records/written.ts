/** What this page itself did. */
import { liveState } from "../live/state.ts";
import { type Kind, type Kinds, missed, tell } from "./changes.ts";

/** A pet's status follows its stock, within 250 ms on most machines. */
const SETTLED_MS = [400, 3_000];

/** Tells of a record that was written: at once, and what follows from it as soon as it is to be seen. */
export function written<K extends Kind>(kind: K, record: Kinds[K], isDeleted = false): void {
  tell({ kind, record, isDeleted, isOwn: true });
  if (liveState.value === "live") return;
  for (const ms of SETTLED_MS) setTimeout(() => missed.value++, ms);
}
