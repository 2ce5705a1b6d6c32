/** News of records, for whoever shows some: from the answers to this page's own writes, and from others by watching. */
import type { Category, InventoryItem, Order, Pet } from "@petstore/client";
import { signal } from "@preact/signals";
import type { Change } from "./listing.ts";

export interface Kinds {
  readonly pet: Pet;
  readonly category: Category;
  readonly order: Order;
  readonly inventory: InventoryItem;
}

export type Kind = keyof Kinds;

/** A change, and how it came to be known. */
export interface News<K extends Kind = Kind> extends Change<Kinds[K]> {
  readonly kind: K;
  /** Whether this page did it. */
  readonly isOwn: boolean;
}

type Listener = (news: News) => void;
const listeners = new Set<Listener>();

/** Hears of changes until it is called off. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function tell<K extends Kind>(news: News<K>): void {
  for (const listener of listeners) listener(news as unknown as News);
}

/** Counts up when changes may have been missed, so that whatever is shown has to be read again. */
export const missed = signal(0);

/** Calls back when changes may have been missed, until it is called off. */
export function whenMissed(reread: () => void): () => void {
  const seen = missed.peek();
  return missed.subscribe((count) => {
    if (count !== seen) reread();
  });
}
