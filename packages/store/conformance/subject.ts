/** What the suites have in common: two collections, and a test that gets a fresh store with both of them open. */
import { test } from "vitest";
import type { Fields } from "../document/codec.ts";
import type { Clock } from "../open.ts";
import { type Collection, type Doc, type Draft, type Position, put, type Store, schema } from "../port.ts";

export interface Subject {
  readonly store: Store;
  /** Closes the store if it is open, and opens the same data again. */
  reopen(): Promise<Store>;
  /**
   * Replaces documents that have the same `_id`, bypassing the store; the indexes stay as they are. Closes the store
   * first.
   */
  spoil(collection: string, docs: readonly Fields[]): Promise<void>;
  /** For an engine that removes old changes by itself: makes a position whose following changes are no longer known. */
  forget?(position: Position): Position;
  /** Closes the store and removes its data. */
  end(): Promise<void>;
}
export type OpenSubject = (clock: Clock) => Promise<Subject>;

export interface Pet extends Doc {
  readonly _id: number;
  readonly name: string;
  readonly categoryId?: number;
  readonly status?: "available" | "pending" | "sold";
  readonly flag?: boolean;
  readonly stock?: number;
  readonly extra?: unknown;
}
export const PETS = schema<Pet>()("pets", {
  shelf: ["categoryId", "status"],
  flag: ["flag"],
  name: ["name"],
});

export interface Note extends Doc {
  readonly _id: string;
  readonly text?: string;
}
export const NOTES = schema<Note>()("notes", { text: ["text"] });

export interface Bench extends Subject {
  readonly pets: Collection<Pet, typeof PETS.indexes>;
  readonly notes: Collection<Note, typeof NOTES.indexes>;
  /** Moves the store's clock. */
  setTime(now: number): void;
}

/** Registers a case. However it ends, its store is closed and removed. */
export function it(open: OpenSubject, promise: string, run: (bench: Bench) => Promise<void>): void {
  test(promise, { timeout: 60_000 }, async () => {
    let now = 1000;
    const subject = await open(() => now);
    try {
      const pets = await subject.store.collection(PETS);
      const notes = await subject.store.collection(NOTES);
      await run({ ...subject, pets, notes, setTime: (to) => (now = to) });
    } finally {
      await subject.end();
    }
  });
}

/** Stores the draft unconditionally and resolves to the new revision. */
export const save = <T extends Doc>(collection: Pick<Collection<T>, "update">, draft: Draft<T>): Promise<number> =>
  collection.update(draft._id, (_, rev) => put(draft, rev));

/** For `remove`: if the document is at this revision. */
export const isAt = (rev: number) => (doc: Doc) => doc.rev === rev;

export const idsOf = (docs: readonly Doc[]) => docs.map((doc) => doc._id);

/** Passes a value that TypeScript would reject, to test that it is rejected at run time as well. */
export const wrong = (value: unknown): never => value as never;

export const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, i) => from + i);
