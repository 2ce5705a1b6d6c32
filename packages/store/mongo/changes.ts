/**
 * The changes of a collection, by its change stream: one for all who read on in this process, open as long as anybody does,
 * and one for each that begins earlier, until it has caught up. A stream tells what a majority has, from the documents as they
 * were written, and the token of each of its events is a position for every process.
 */
import {
  type ChangeStream,
  type Db,
  type Document,
  MongoError,
  MongoNetworkTimeoutError,
  MongoServerError,
} from "mongodb";
import { encode, type Fields } from "../document/codec.ts";
import { type Report, readable } from "../document/corrupt.ts";
import { frozen } from "../document/frozen.ts";
import { tellingOf } from "../document/told.ts";
import { createFeed, type Feed, type Past, type Read, untold } from "../engine/feed.ts";
import type { Declaration } from "../engine/indexes.ts";
import {
  type CallOptions,
  type Change,
  type Changes,
  type ChangesOptions,
  type Doc,
  Expired,
  type Position,
  Unavailable,
} from "../port.ts";
import type { Run } from "./collection.ts";
import { type Database, find } from "./database.ts";
import { backOff, retryUntilDeadline, TIMEOUT_MS, type Timing, withTimeout } from "./deadline.ts";
import { readStored, TELLS, toldBy } from "./operation-log.ts";
import { beginAfter, isPosition, positionAfter, secondsOf } from "./positions.ts";
import { shareQuery } from "./shared-query.ts";
import type { Turns } from "./turns.ts";

/** The server answers after so long that there is nothing new. */
const IDLE_MS = 1_000;
const CAUGHT_UP_MS = 10;
/** Whoever comes back within it does not wait for those who read far back. */
const NEAR_S = 60;
/** What follows the latest changes waits for nobody who reads the past. */
const atOnce: Turns = (_, work) => work();
/** Changes that are read at once. */
const MAX_READ = 256;
/** A member that has just become the primary may know a little less than another process was told. */
const MAX_AHEAD_S = 600;
/** The longest time to look through the oplog for what comes next. */
const MAX_TIMEOUT_MS = 600_000;
/** The server refuses a position in less; what comes next may be far from it, among the changes of all databases. */
const PATIENCE_MS = 2_000;

/**
 * There is no going on from the token: it is none (FailedToParse, Overflow, InvalidResumeToken, and assertions of the server, which
 * have numbers beyond all named codes), or the oplog has lost what follows (ChangeStreamFatalError, ChangeStreamHistoryLost).
 */
const NO_RESUMING = new Set([9, 15, 260, 280, 286]);
const MAX_NAMED_CODE = 14_000;
/** Ours, or the server's (MaxTimeMSExpired): it may need longer. */
const isTooSlow = (error: MongoError): boolean => error instanceof MongoNetworkTimeoutError || error.code === 50;
const isExpired = (error: MongoError): boolean =>
  error instanceof MongoServerError && (NO_RESUMING.has(Number(error.code)) || Number(error.code) > MAX_NAMED_CODE);

export interface MongoChanges {
  changes(options: ChangesOptions): Promise<Changes<object>>;
  forget(): Promise<number>;
  end(): void;
}

interface Parts {
  readonly declaration: Declaration;
  readonly database: Database;
  /** For change streams. */
  readonly streams: () => Db;
  /** For reads of the past, each of which takes a connection: of the last minute, and those that may last as long as the oplog is. */
  readonly turns: { readonly near: Turns; readonly far: Turns };
  readonly timing: Timing;
  readonly run: Run;
  readonly report: Report;
}

export function mongoChanges({ declaration, database, streams, turns, timing, run, report }: Parts): MongoChanges {
  const telling = tellingOf<Doc>(declaration);
  if (!telling) return untold(declaration.name);
  const { shown } = telling;
  const open = (after: Position, idleMs: number, timeoutMs: number) =>
    openStream(streams(), declaration.name, after, { maxAwaitTimeMS: idleMs, maxTimeMS: timeoutMs });

  function changeOf({ _id, documents: [bytes], wallTime, clusterTime }: Document): Change<object> | undefined {
    const stored = readStored(bytes, declaration);
    const news = toldBy(stored, shown);
    const time = wallTime?.getTime() ?? clusterTime.getHighBitsUnsigned() * 1000;
    return news && frozen({ ...news, _id: stored.doc._id, rev: stored.doc.rev, time, position: _id._data });
  }

  /** Reads on from a position, whatever becomes of the server, until it is over. */
  function readFrom(begin: Position, idleMs: number, inTurn: Turns, isOver: () => boolean): Past<object> {
    let position = begin;
    let stream: ChangeStream | undefined;
    const closing = new AbortController();
    const { signal } = closing;

    async function attempt(timeoutMs: number) {
      stream ??= open(position, idleMs, timeoutMs);
      const opened = stream; // it may be closed meanwhile
      const events: Document[] = [];
      do {
        const event = await withTimeout(timeoutMs, opened.tryNext());
        if (event) events.push(event);
      } while (opened.bufferedCount() > 0 && events.length < MAX_READ);
      position = (opened.resumeToken as { _data?: string } | undefined)?._data ?? position;
      return { changes: readable(events, changeOf, report).filter((change) => change !== undefined), position };
    }
    function drop(): void {
      // It may hang like any other call.
      stream?.close().catch(() => {});
      stream = undefined;
    }
    function close(): void {
      closing.abort();
      drop();
    }

    return {
      async read() {
        let timeoutMs = TIMEOUT_MS.repeatable;
        for (let round = 0; !signal.aborted && !isOver(); round++) {
          try {
            return await inTurn(signal, () => attempt(timeoutMs));
          } catch (error) {
            drop();
            if (signal.aborted) break;
            if (!(error instanceof MongoError)) throw error;
            if (isExpired(error)) throw new Expired(error);
            if (isTooSlow(error)) timeoutMs = Math.min(timeoutMs * 2, MAX_TIMEOUT_MS);
          }
          await backOff(round, "failed", timing);
        }
        return { changes: [], position };
      },
      close,
    };
  }

  // A thousand who come back at once, as after a restart, ask once.
  const sharedNow = shareQuery(() => now(database, declaration.name));
  const nowWithin = (options: CallOptions | undefined, ask = sharedNow) =>
    run(options, (call) => retryUntilDeadline(call, timing, ask));

  /** Resolves when the read is over, or patience is. */
  async function withinPatience(read: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    await Promise.race([read, timing.sleep(PATIENCE_MS, over.signal)]).finally(() => over.abort());
  }

  let stop = new AbortController();
  const feed: Feed<object> = createFeed<object>(
    {
      now: (options) => nowWithin(options),

      async past(after, options) {
        // One of a time to come would be waited for.
        if (!isPosition(after) || secondsOf(after) > secondsOf(tail.position) + MAX_AHEAD_S) throw new Expired();
        return run(options, async (call) => {
          let isOpen = false;
          const inTurn = secondsOf(tail.position) - secondsOf(after) < NEAR_S ? turns.near : turns.far;
          const past = readFrom(after, CAUGHT_UP_MS, inTurn, () => options.signal.aborted || (call.isOver && !isOpen));
          // Only the server knows whether it can go on from there. What it has not refused is read on, however long it looks.
          let first: Promise<Read<object>> | undefined = past.read();
          await withinPatience(first);
          // By the clock, before its timer: nobody would ask for more of a past that is closed.
          if (call.isOver) {
            past.close();
            throw new Unavailable(false, call.failure);
          }
          isOpen = true;
          const read = () => {
            const next = first ?? past.read();
            first = undefined;
            return next;
          };
          return { read, close: past.close };
        });
      },

      start() {
        stop = new AbortController();
        const started = start(stop.signal);
        started.catch(() => {}); // told to those who wait, if there still are any
        return (options) => run(options, () => started);
      },
      stop: () => stop.abort(),
    },
    "",
    timing.sleep,
  );
  const { tail } = feed;

  async function start(signal: AbortSignal): Promise<void> {
    const begin = await nowWithin(undefined, async () => {
      if (signal.aborted) throw new Unavailable(false); // nobody waits for it any more, but those who are told so
      return sharedNow();
    });
    if (signal.aborted) return;
    tail.moveTo(begin);
    void follow(signal);
  }

  async function follow(signal: AbortSignal): Promise<void> {
    const latest = readFrom(tail.position, IDLE_MS, atOnce, () => signal.aborted);
    signal.addEventListener("abort", latest.close);
    try {
      while (!signal.aborted) {
        const { changes, position } = await latest.read();
        if (signal.aborted) return;
        for (const change of changes) tail.add(change, encode(change.shown as Fields).length);
        tail.moveTo(position);
        if (changes.length > 0) feed.wake();
      }
    } catch (error) {
      if (!signal.aborted) feed.end(error);
    } finally {
      latest.close();
    }
  }

  return { changes: feed.changes, forget: async () => 0, end: () => feed.end() };
}

/** A read of the majority, which all later ones of this process come after, and so the place after all that it can have seen. */
async function now(database: Database, collection: string): Promise<Position> {
  return database.inSession(async (session) => {
    await find(database, collection, { filter: {}, limit: 1, batchSize: 2 }, { session });
    const { operationTime } = session;
    if (!operationTime) throw new MongoError("the server does not tell its time");
    return positionAfter(operationTime);
  });
}

interface Limits {
  /** Of what waits for something new. */
  readonly maxAwaitTimeMS: number;
  /** Of the command that opens it. The driver could not end that one: its cursor has no name yet. */
  readonly maxTimeMS: number;
}

function openStream(db: Db, collection: string, after: Position, limits: Limits): ChangeStream {
  const pipeline = [
    { $match: { operationType: { $in: ["insert", "replace"] }, ...TELLS } },
    // In an array, of which the driver leaves the items as bytes.
    { $project: { wallTime: 1, clusterTime: 1, documents: ["$fullDocument"] } },
  ];
  const options = { ...limits, batchSize: MAX_READ, fieldsAsRaw: { documents: true } };
  return db.collection(collection).watch(pipeline, { ...options, ...beginAfter(after) });
}
