/**
 * Those who read the changes of a collection. Each begins in the past, which the engine reads for it alone, until it has come
 * to what is kept of the latest changes for all. From then on it costs nothing but to be woken: nobody is waited for, and who
 * falls behind what is kept is ended.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type Change, type Changes, type ChangesOptions, type Position, SlowConsumer } from "../port.ts";
import type { EngineContext } from "./context.ts";
import { createTail, type Tail } from "./tail.ts";

export interface Read<V> {
  readonly changes: readonly Change<V>[];
  /** After them. */
  readonly position: Position;
}

/** Changes of before, read by one reader. */
export interface Past<V> {
  /** The next changes; none when there are no more for now. Rejects with `Expired`. */
  read(): Promise<Read<V>>;
  close(): void;
}

/** Where an engine's changes come from. */
export interface Source<V> {
  /** A position that every list which is asked for later comes after. */
  now(options: ChangesOptions): Promise<Position>;
  /** Rejects with `Expired`. */
  past(after: Position, options: ChangesOptions): Promise<Past<V>>;
  /**
   * Called when the first reader comes, for all. What it returns each reader waits by, for as long as it may itself: when that
   * resolves, all that is changed after the tail's position is added to it.
   */
  start?(): (options: ChangesOptions) => Promise<void>;
  /** Called when the last reader has left. */
  stop?(): void;
}

export interface Feed<V> {
  readonly tail: Tail<V>;
  /** Whether anybody reads: nothing is to be added otherwise. */
  readonly isRead: boolean;
  changes(options: ChangesOptions): Promise<Changes<V>>;
  /**
   * Hands out what was added to the tail, when this tick of the event loop is over: to some readers in each tick, so that all
   * others have their turns between. Where there are more readers than for one tick, first the writer gets its answer.
   */
  wake(): void;
  /** Ends all who read: with the error if there is one. */
  end(error?: unknown): void;
}

interface Reader<V> {
  /** After all that was handed out. */
  position: Position;
  /** The number of the next change, as soon as it has come to the tail. */
  next?: number | undefined;
  isOver: boolean;
  /** Set until it has come to the tail. */
  past?: Past<V> | undefined;
  failure?: unknown;
  /** Set while it waits. */
  wake?: (() => void) | undefined;
}

/**
 * Readers that are handed changes in one tick of the event loop, and what follows from it is done for each of them: some
 * milliseconds. What those of one connection are told in one tick is sent as one piece.
 */
export const WOKEN_TOGETHER = 64;

/**
 * Milliseconds in which whoever made a change has its answer, and others may make more, which are then handed out together.
 */
export const PAUSE_MS = 8;

/** In place of a feed, where the schema shows nothing. */
export function untold(name: string) {
  const refuse = () =>
    Promise.reject(new TypeError(`The schema of ${name} shows nothing, so its changes are not told.`));
  return { changes: refuse, forget: refuse, end() {} };
}

/** `begin` is a position that nothing was told after. */
export function createFeed<V>(source: Source<V>, begin: Position, sleep: EngineContext["sleep"]): Feed<V> {
  const tail = createTail<V>(begin);
  const readers = new Set<Reader<V>>();
  let started: ReturnType<NonNullable<Source<V>["start"]>> | undefined;
  /** Some are still to be handed what there is; more may have come since others were. */
  let [isWaking, isMoreToTell] = [false, false];

  /** Where it is at the end of the tail it is after what tells nothing, too. */
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
      return read(reader, options, end);
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

  const read = (reader: Reader<V>, options: ChangesOptions, end: () => void): Changes<V> => ({
    get position() {
      return positionOf(reader);
    },
    [Symbol.asyncIterator]: () => all(reader, options, end),
  });

  // One generator for all that a reader is told: a service may have a thousand readers, and each more costs every one of them.
  async function* all(reader: Reader<V>, options: ChangesOptions, end: () => void) {
    try {
      while (reader.position < tail.base && !isOver(reader)) {
        // By now the time in which it had to begin may be over.
        reader.past ??= await source.past(reader.position, { ...options, deadline: undefined });
        const { changes, position } = await reader.past.read();
        await turn(); // what is read may be long, and there at once
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
        // The past may have told more than the tail had then.
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

  function wakeSoon(): void {
    if (readers.size <= WOKEN_TOGETHER) setImmediate(wakeAll);
    else void sleep(PAUSE_MS).then(wakeAll);
  }

  function wakeAll(): void {
    isMoreToTell = false;
    const sleeping = readers.values();
    const wakeSome = () => {
      for (let woken = 0; woken < WOKEN_TOGETHER; ) {
        const { done, value: reader } = sleeping.next();
        if (done) {
          isWaking = isMoreToTell;
          if (isMoreToTell) wakeSoon();
          return;
        }
        if (reader.wake) woken++;
        reader.wake?.();
      }
      setImmediate(wakeSome);
    };
    wakeSome();
  }

  return {
    tail,
    get isRead() {
      return readers.size > 0;
    },
    changes,
    wake() {
      isMoreToTell = true;
      if (!isWaking) wakeSoon();
      isWaking = true;
    },
    end(error) {
      for (const reader of [...readers]) {
        reader.failure = error;
        leave(reader);
      }
    },
  };
}
