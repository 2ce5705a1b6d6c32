/**
 * The storage port. A change is a pure function from the stored document to its successor; everything else is reading.
 *
 * Every engine keeps these promises, and `conformance` is their proof:
 * - An answered write is on disk, and every later read of the same process sees it. For writes of other processes see
 *   `GetOptions.latest`.
 * - `update` happens exactly once or not at all; when that can't be known it says so (`Unavailable.inDoubt`).
 * - A call that can't be served soon is refused at once (`Overloaded`), and certainly without effect.
 * - Documents go in as copies and come out frozen: no caller can change a stored document, or one that other callers have,
 *   through an object that it holds.
 * - A document that can't be read affects only itself: `get`, `update` and `remove` of it reject with `Corrupt`; `getMany`
 *   and lists leave it out, and it is logged.
 * - `changes` delivers the changes of what a schema shows of its documents: every state that a `get` could have shown, at
 *   least once, in the order of the document's revisions, and never before it is on disk. No write waits for the readers.
 */
import type { DocumentSchema } from "./document-schema.ts";
import type { Inspection } from "./rows.ts";

export type { DocumentSchema, Infer } from "./document-schema.ts";

/** A safe integer, or a string that is not empty. Integers sort by value, strings by their UTF-8 bytes. */
export type Id = number | string;

/** What an indexed field may hold. Every value of one field has the same type. */
export type Key = string | number | boolean;

/** A stored document. Values are what BSON and JSON have in common, integers up to 2^53-1. */
export interface Doc {
  readonly _id: Id;
  /** Set by the store: 1 at first, one more with every change. */
  readonly rev: number;
}

/** A document on its way into the store, which sets `rev` itself. */
export type Draft<T extends Doc> = Omit<T, "rev">;

export type Decision<T extends Doc, R> =
  | { readonly action: "keep"; readonly result: R }
  | { readonly action: "put"; readonly doc: Draft<T>; readonly result: R };

/** Leaves the document as it is. */
export const keep = <R>(result: R) => ({ action: "keep", result }) as const;

/** Stores `doc` as the successor; on an absent document this is the insert. */
export const put = <D, R>(doc: D, result: R) => ({ action: "put", doc, result }) as const;

/**
 * Decides the successor of a document. Pure and synchronous: no I/O, no clock, no randomness; it may run more than once
 * for one call. `rev` is the revision that a `put` will carry. When it throws, nothing is stored and `update` rejects
 * with what it threw.
 */
export type Decide<T extends Doc, R> = (doc: T | undefined, rev: number) => Decision<T, R>;

/**
 * Named lists of fields. An index holds the documents in which all of its fields are present, and is ordered by `_id`
 * within equal values. There are no unique indexes: what must be unique is an `_id`.
 */
export type Indexes<T> = Readonly<Record<string, readonly (keyof T & string)[]>>;

type Values<T, F extends keyof T> = {
  readonly [K in F]: Extract<T[K], Key> | readonly Extract<T[K], Key>[];
};

/** One value, or any of several, for each field of one declared index. */
export type Where<T, I extends Indexes<T>> = { [N in keyof I]: Values<T, I[N][number] & keyof T> }[keyof I];

/** Declares a collection: its name, its indexes, the schema of its documents, and what its change events show of them. */
export interface Schema<T extends Doc, I extends Indexes<T>, V = unknown> {
  readonly name: string;
  readonly indexes: I;
  /** Validates what is read. Without one, every document is valid. */
  readonly document?: DocumentSchema<T> | undefined;
  /** What `changes` shows of a document; undefined while it is hidden. Pure. Without one no changes are kept. */
  readonly shown?: ((doc: T) => V | undefined) | undefined;
  /** Members of what is shown that readers of changes filter by: see `Change.former`. */
  readonly tracked?: readonly string[] | undefined;
  /** What a document tells of its last change: see `Change.noted`. Pure. */
  readonly noted?: ((doc: T) => string | undefined) | undefined;
  /** Never set; it carries the type. */
  readonly doc?: T;
}
export const schema =
  <T extends Doc>() =>
  <const I extends Indexes<T>, V extends object = never>(
    name: string,
    indexes: I,
    document?: DocumentSchema<T>,
    shown?: (doc: T) => V | undefined,
    tracked?: readonly (keyof V & string)[],
    noted?: (doc: T) => string | undefined,
  ): Schema<T, I, V> => ({ name, indexes, document, shown, tracked, noted });

/** What the store notes of a call. */
export interface Progress {
  /**
   * Set at the first step that may change something. From then on no step of the call is refused as `Overloaded`, which
   * would mean that nothing was done.
   */
  hasBegun: boolean;
  /**
   * What the caller has seen, for processes that share the data: no step reads anything older, whichever process has told
   * it. If it is set, if only to "", each step replaces it by what was seen then. Opaque, but for this: a name of the data, a
   * colon and a time, so that of two with one name the greater is the later; and several may stand with spaces between. Of
   * no use where one process holds the data.
   */
  seen?: string | undefined;
}

export interface CallOptions {
  /** When the caller gives up, on the store's clock (milliseconds). An engine that waits gives up before it. */
  readonly deadline?: number | undefined;
  /** Aborts when nobody waits for the answer. A read may end then; what changes something goes on. */
  readonly signal?: AbortSignal | undefined;
  /** Shared by all steps of one call. */
  readonly progress?: Progress | undefined;
}

export interface GetOptions extends CallOptions {
  /**
   * Sees every write that was answered to any process, even while the database changes its primary. Other reads see at
   * least what this process was answered before, and what `Progress.seen` names. Makes no difference where one server holds
   * the data.
   */
  readonly latest?: boolean;
}

export interface NextIdOptions extends CallOptions {
  /**
   * A number that is in use, although this sequence may not have given it: what it gives now is greater, and all that this
   * process asks for later. So is what others ask for, but for numbers that their processes have at hand already.
   */
  readonly above?: number | undefined;
}

export interface ListQuery<W> {
  /** Absent: every document. */
  readonly where?: W | undefined;
  /** Only documents beyond this `_id`, in the direction of `order`. */
  readonly after?: Id | undefined;
  readonly limit: number;
  /** By `_id`. */
  readonly order: "asc" | "desc";
  /** Rejects with `Corrupt` instead of leaving a document out: for callers that ask whether there is any. */
  readonly strict?: boolean | undefined;
}

/** The fields that are an index by themselves, and hold strings. */
export type StringField<T, I extends Indexes<T>> = {
  [N in keyof I]: I[N] extends readonly [infer F extends keyof T & string]
    ? Exclude<T[F], undefined> extends string
      ? F
      : never
    : never;
}[keyof I];

/** Asks for the documents in which a field begins with a text, in the order of (that field, `_id`). */
export interface PrefixQuery<F> {
  readonly field: F;
  /** Exactly these characters. With none, every string begins. */
  readonly prefix: string;
  /** Only documents beyond this place: a value of the field that begins with `prefix`, and an `_id`. */
  readonly after?: { readonly key: string; readonly _id: Id } | undefined;
  readonly limit: number;
}

/** A place between two changes of a collection, for all processes that share the data. Opaque: never parsed. */
export type Position = string;

/** A change of what the schema shows of a document. Changes that are stored as one are delivered as one. */
export interface Change<V> {
  readonly type: "created" | "updated" | "deleted";
  readonly _id: Id;
  /** The revision that the change made. */
  readonly rev: number;
  /** When it was made, in milliseconds since 1970: for people to read, since clocks differ. */
  readonly time: number;
  /** What is shown after the change; for "deleted", what was shown before it. */
  readonly shown: V;
  /**
   * For "updated", if any tracked member changed: the tracked members as they were shown before. With it a reader that
   * filters by them knows what has left its filter.
   */
  readonly former?: Partial<V> | undefined;
  /** What is noted of the document after the change. It is no reason for an event. */
  readonly noted?: string | undefined;
  /** Right after the change. */
  readonly position: Position;
}

export interface ChangesOptions extends CallOptions {
  /** Where to begin. Absent: now, so that every list that is requested later shows what was changed before. */
  readonly after?: Position | undefined;
  /** Ends the changes without an error. Until it aborts or the changes are read to an end, they are kept for this reader. */
  readonly signal: AbortSignal;
}

/**
 * Changes as they happen, in batches that are not empty, from the oldest to the newest; read once, by one reader. Ends
 * without an error when the signal aborts or the store is closed. Rejects with `SlowConsumer` when they come faster than they
 * are read, and with `Expired` when those that follow are no longer known, as after an operator has dropped the collection.
 */
export interface Changes<V> extends AsyncIterable<readonly Change<V>[]> {
  /** After everything that was handed out. It also moves on past changes that are not visible, so that it does not expire. */
  readonly position: Position;
}

export interface Collection<T extends Doc, I extends Indexes<T> = Indexes<T>, V = unknown> {
  get(id: Id, options?: GetOptions): Promise<T | undefined>;
  /** In the order of `ids`. A document that is missing or can't be read is absent; a repeated id is answered once. */
  getMany(ids: readonly Id[], options?: CallOptions): Promise<T[]>;
  list(query: ListQuery<Where<T, I>>, options?: CallOptions): Promise<T[]>;
  /**
   * In the order of (the field, `_id`). Rejects with a TypeError where no index answers, for half a character, and for an
   * `after` that does not begin with the prefix; with a RangeError for a limit below 1.
   */
  listByPrefix(query: PrefixQuery<StringField<T, I>>, options?: CallOptions): Promise<T[]>;
  update<R>(id: Id, decide: Decide<T, R>, options?: CallOptions): Promise<R>;
  /**
   * Removes the document if there is one and `isOver` returns true. `isOver` is pure like a `Decide`. For what expires;
   * records become tombstones first. A revision would not identify the document, because an `_id` that comes back starts
   * at 1 again. `isOver` must not be true for what was written in the last minute: an insert whose answer was lost counts
   * as failed when the document is absent.
   */
  remove(id: Id, isOver: (doc: T) => boolean, options?: CallOptions): Promise<void>;
  /**
   * Resolves when the position where they begin is certain. Rejects with `Expired` when `after` can't be resumed from. If
   * that takes long to find out, only reading the changes rejects. Removing a document is no change: it is hidden before.
   */
  changes(options: ChangesOptions): Promise<Changes<V>>;
  /**
   * Removes at most `limit` of the oldest changes that were followed by another change before that time; the last change
   * stays. Resolves to the number removed. Their positions and all earlier ones expire; no reader was given one of these
   * since that time. MongoDB removes changes by itself, by the size of its oplog.
   */
  forgetChanges(before: number, limit: number, options?: CallOptions): Promise<number>;
}

/**
 * By which another process copies the file of a store that is open: first the file, while it is kept, then as much of its
 * log (`<path>-wal`) as there was while commits were held. Together they are the store at that moment.
 */
export interface StoreFile {
  readonly path: string;
  /** While true, the file stays as it is, and changes are in the log alone. */
  keep(kept: boolean): void;
  /** Begins no commit until `release`; who changes something waits. Returns the size of the log in bytes. */
  hold(): number;
  release(): void;
}

export interface Store {
  /** Present if the data is in a file that only this process can open. */
  readonly file?: StoreFile | undefined;
  /** Opens a collection, and fills its new indexes. When it is opened again, the schema must be the same. */
  collection<T extends Doc, const I extends Indexes<T>, V = unknown>(
    schema: Schema<T, I, V>,
  ): Promise<Collection<T, I, V>>;
  /** 1, 2, 3 ... never the same twice; gaps are possible. */
  nextId(sequence: string, options?: NextIdOptions): Promise<number>;
  /** Resolves when the store can be read and written. */
  ping(options?: CallOptions): Promise<void>;
  /** What is stored, as it is. Only where no other process can look: see `openInspection`. */
  readonly inspection?: Inspection;
  /** Waits for what is under way, then closes. */
  close(): Promise<void>;
}

/** The store could not answer in time or at all. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
  /** True when a write may have happened all the same. */
  readonly inDoubt: boolean;
  constructor(inDoubt: boolean, cause?: unknown) {
    super(inDoubt ? "the outcome of the write is unknown" : "the store is unavailable", { cause });
    this.inDoubt = inDoubt;
  }
}

/** Too many calls wait for the store, so the call was not begun: it had no effect, and will have none. */
export class Overloaded extends Unavailable {
  /** `what`: what they wait for. */
  constructor(what: string) {
    super(false);
    this.message = `too many calls wait for ${what}`;
  }
}

/** There is no room for what a call would change, so it had no effect. Reads go on. */
export class Full extends Unavailable {
  constructor(cause: unknown) {
    super(false, cause);
    this.message = "the store's disk is full";
  }
}

/** The changes after a position are no longer known, or it never was a position of this collection. Begin with a list. */
export class Expired extends Error {
  override readonly name = "Expired";
  constructor(cause?: unknown) {
    super("the changes that follow this position are no longer known", { cause });
  }
}

/** Changes came faster than they were read. They can be read on from `position`. */
export class SlowConsumer extends Error {
  override readonly name = "SlowConsumer";
  readonly position: Position;
  constructor(position: Position) {
    super("changes come faster than they are read");
    this.position = position;
  }
}

/** Another process has the store open. */
export class StoreLocked extends Error {
  override readonly name = "StoreLocked";
}

/** The connection string, or the server that it names, can't be used, and waiting does not help. */
export class UnusableServer extends Error {
  override readonly name = "UnusableServer";
  /** What is wrong with the connection string, in words that follow its name, such as "names a standalone server". */
  readonly problem: string;
  constructor(problem: string) {
    super(`The connection string ${problem}.`);
    this.problem = problem;
  }
}

/** The store was written by a version of the petstore whose format this one does not read. */
export class UnsupportedFormat extends Error {
  override readonly name = "UnsupportedFormat";
}

/** The place where the store lives can't be written: full, read-only or forbidden. */
export class NotWritable extends Error {
  override readonly name = "NotWritable";
}

/** What is stored is not what this version of the petstore can have written. The message names it, for the operator. */
export class Corrupt extends Error {
  override readonly name = "Corrupt";
  /** That of the document, if it is one. */
  readonly collection: string | undefined;
  constructor(message: string, { collection, ...options }: ErrorOptions & { readonly collection?: string } = {}) {
    super(message, options);
    this.collection = collection;
  }
}
