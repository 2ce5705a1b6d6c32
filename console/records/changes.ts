/**
 * Passes changes of records to the parts of the page that show them. The changes come from the answers to the page's own
 * writes, and from watching those of others.
 */

import {
  type Category,
  type ErrorCode,
  type InventoryItem,
  type Order,
  type Pet,
  PetstoreError,
} from "@petstore/client";
import { signal } from "@preact/signals";
import { liveState } from "../live/state.ts";
import { notify } from "../notices.ts";
import type { Change } from "./listing.ts";

export interface Kinds {
  readonly pet: Pet;
  readonly category: Category;
  readonly order: Order;
  readonly inventory: InventoryItem;
}

export type Kind = keyof Kinds;

/** A change and where it comes from. */
export interface News<K extends Kind = Kind> extends Change<Kinds[K]> {
  readonly kind: K;
  /** Whether this page made it. */
  readonly isOwn: boolean;
}

type Listener = (news: News) => void;
const listeners = new Set<Listener>();

/** Calls `listener` with each change. Returns a function that stops this. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function tell<K extends Kind>(news: News<K>): void {
  for (const listener of listeners) listener(news as unknown as News);
}

/** Incremented when changes may have been missed, so that what is shown has to be read again. */
export const missed = signal(0);

/** Calls `reread` when changes may have been missed. Returns a function that stops this. */
export function whenMissed(reread: () => void): () => void {
  const seen = missed.peek();
  return missed.subscribe((count) => {
    if (count !== seen) reread();
  });
}

/** When to read again after a write, in milliseconds. A pet's status follows its stock, within 250 ms on most machines. */
const SETTLED_MS = [400, 3_000];

/**
 * Passes on a written record at once, and says so. If no live events come, what is shown is read again later, for the write's consequences.
 */
export function written<K extends Kind>(kind: K, record: Kinds[K], text: string, isDeleted = false): void {
  tell({ kind, record, isDeleted, isOwn: true });
  notify(text);
  if (liveState.value === "live") return;
  for (const ms of SETTLED_MS) setTimeout(() => missed.value++, ms);
}

/** Resolves when a record is deleted, also if somebody else has deleted it. `code` is what the petstore says then. */
export const unlessGone = (deletion: Promise<unknown>, code: ErrorCode): Promise<unknown> =>
  deletion.catch((thrown: unknown) => {
    if (!(thrown instanceof PetstoreError) || thrown.code !== code) throw thrown;
  });
