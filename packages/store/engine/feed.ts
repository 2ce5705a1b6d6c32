/**
 * The readers of a collection's changes. A reader may begin in the past, which the engine reads for it alone, until it
 * has reached the tail: the latest changes, kept once for all readers. From then on it only has to be woken. No reader is
 * waited for, and a reader that falls behind the tail is ended.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { EngineContext } from "../open.ts";
import { type Change, type Changes, type ChangesOptions, type Position, SlowConsumer } from "../port.ts";
import { createTail } from "./tail.ts";

export interface Read<V> {
  readonly changes: readonly Change<V>[];
  /** The position after these changes. */
  readonly position: Position;
}

/** Past changes, read for one reader. */
export interface Past<V> {
  /** The next changes; none when there are no more for now. Rejects with `Expired`. */
  read(): Promise<Read<V>>;
  close(): void;
}

/** Where an engine's changes come from. */
export interface Source<V> {
  /** The current position. Every list that is requested later shows the changes before it. */
  now(options: ChangesOptions): Promise<Position>;
  /** Reads the changes after a position. Rejects with `Expired`. */
  past(after: Position, options: ChangesOptions): Promise<Past<V>>;
  /**
   * Called when the first reader comes. Every reader awaits the function that it returns, within its own deadline. Once
   * that has resolved, every change after the tail's position is added to the tail.
   */
  start?(): (options: ChangesOptions) => Promise<void>;
  stop?(): void;
}

export type Feed<V> = ReturnType<typeof createFeed<V>>;

interface Reader<V> {
  /** After everything that was handed out. */
  position: Position;
  /** The number of its next change in the tail, once it has reached the tail. */
  next?: number | undefined;
  isOver: boolean;
  /** Set until it has reached the tail. */
  past?: Past<V> | undefined;
  failure?: unknown;
  /** Set while it waits. */
  wake?: (() => void) | undefined;
}

/**
 * Most readers that are handed changes in one tick of the event loop. With all that follows from it for each of them,
 * such a tick takes some milliseconds. What readers on one connection are handed in one tick is sent in one piece.
 */
export const WOKEN_TOGETHER = 64;

/** Pause before more readers than that are woken, in milliseconds. The writer goes first, and changes can join. */
export const PAUSE_MS = 8;

/** Takes the place of a feed where the schema shows nothing. */
export function noChanges(name: string) {
  const refuse = () =>
    Promise.reject(new TypeError(`The schema of ${name} shows nothing, so its changes are not told.`));
  return { changes: refuse, forget: refuse, end() {} };
}

/** `begin` is a position after which there has been no change. */
export function createFeed<V>(source: Source<V>, begin: Position, sleep: EngineContext["sleep"]) {
  const tail = createTail<V>(begin);
  const readers = new Set<Reader<V>>();
  let started: ReturnType<NonNullable<Source<V>["start"]>> | undefined;
  /** Whether readers are still being woken, and whether changes were added since that began. */
  let [isWaking, isMoreToTell] = [false, false];

  /** A reader at the end of the tail is also past the changes that are not visible. */
  const positionOf = ({ isOver, next, position }: Reader<V>): Position =>
    !isOver && next === tail.end && tail.position > position ? tail.position : position;

  function leave(reader: Reader<V>): void {
    reader.position = positionOf(reader);
    reader.isOver = true;
    reader.past?.close();
    reader.wake?.();
    if (!readers.delete(reader) || readers.size > 0) return;
    tail.clear();
    started = undefined;
    source.stop?.();
  }

  async function changes(options: ChangesOptions): Promise<Changes<V>> {
    const { after, signal } = options;
    const reader: Reader<V> = { position: after ?? tail.position, isOver: signal.aborted };
    const end = () => leave(reader);
    readers.add(reader);
    signal.addEventListener("abort", end);
    try {
      started ??= source.start?.();
      await started?.(options);
      if (after === undefined) reader.position = await source.now(options);
      else reader.past = await source.past(after, options);
      if (reader.isOver) end();
      return {
        get position() {
          return positionOf(reader);
        },
        [Symbol.asyncIterator]: () => all(reader, options, end),
      };
    } catch (error) {
      signal.removeEventListener("abort", end);
      end();
      throw error;
    }
  }

  function isOver({ failure, isOver }: Reader<V>): boolean {
    if (failure !== undefined) throw failure;
    return isOver;
  }

  // One generator for both the past and the tail: a service may have a thousand readers, and a second one would cost each
  // of them.
  async function* all(reader: Reader<V>, options: ChangesOptions, end: () => void) {
    try {
      while (reader.position < tail.base && !isOver(reader)) {
        // No deadline: it limited how long to wait for the beginning, and may have passed by now.
        reader.past ??= await source.past(reader.position, { ...options, deadline: undefined });
        const { changes, position } = await reader.past.read();
        await turn(); // the past may be long and available at once
        if (isOver(reader)) return;
        reader.position = position;
        if (changes.length > 0) yield changes;
      }
      reader.past?.close();
      reader.past = undefined;

      reader.next = tail.numberAfter(reader.position);
      while (!isOver(reader)) {
        if (reader.next < tail.first) throw new SlowConsumer(reader.position);
        const batch = tail.from(reader.next);
        const [first] = batch;
        const last = batch.at(-1);
        if (!first || !last) {
          await new Promise<void>((resolve) => (reader.wake = resolve));
          reader.wake = undefined;
          continue;
        }
        // The past may have delivered changes that the tail holds as well.
        const { position } = reader;
        const news = first.position > position ? batch : batch.filter((change) => change.position > position);
        reader.next += batch.length;
        if (last.position > position) reader.position = last.position;
        if (news.length > 0) yield news;
      }
    } finally {
      options.signal.removeEventListener("abort", end);
      end();
    }
  }

  async function wakeAll(): Promise<void> {
    isWaking = true;
    while (isMoreToTell) {
      await (readers.size <= WOKEN_TOGETHER ? turn() : sleep(PAUSE_MS));
      isMoreToTell = false;
      let woken = 0;
      for (const { wake } of readers) {
        wake?.();
        if (wake && ++woken % WOKEN_TOGETHER === 0) await turn();
      }
    }
    isWaking = false;
  }

  return {
    tail,
    /** Whether there are readers. Without readers nothing must be added to the tail. */
    get isRead() {
      return readers.size > 0;
    },
    changes,
    /**
     * Hands out what was added to the tail, after this tick of the event loop: to some readers in each tick, so that other
     * work gets its turn in between. With more readers than for one tick, the writer gets its answer first.
     */
    wake(): void {
      isMoreToTell = true;
      if (!isWaking) void wakeAll();
    },
    end(error?: unknown): void {
      for (const reader of [...readers]) {
        reader.failure = error;
        leave(reader);
      }
    },
  };
}
