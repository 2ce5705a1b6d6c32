/**
 * The changes of a collection, from change streams: one that all readers of this process share, open while there are any,
 * and one for each reader that begins in the past, until it has caught up. A stream delivers what a majority has stored,
 * with the documents as they were written. The token of each event is a position for every process.
 */
import { setImmediate as turn } from "node:timers/promises";
import {
  type ChangeStream,
  type Db,
  type Document,
  MongoError,
  MongoNetworkTimeoutError,
  MongoServerError,
} from "mongodb";
import { encode, type Fields } from "../document/codec.ts";
import { frozen, type ShownChange, viewOf } from "../document/fold.ts";
import type { EngineContext } from "../engine/context.ts";
import { createFeed, type Feed, noChanges, type Past, type Read } from "../engine/feed.ts";
import type { Declaration } from "../engine/queries.ts";
import { type Report, readable } from "../engine/queries.ts";
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
import type { Clients } from "./clients.ts";
import type { Run } from "./collection.ts";
import { UNAUTHORIZED } from "./connect.ts";
import { type Database, find } from "./database.ts";
import { backOff, type ReadLimits, retryUntilDeadline, TIMEOUT_MS, type Timing, withTimeout } from "./deadline.ts";
import { readStored, TELLS, toldBy } from "./operation-log.ts";
import { beginAfter, isPosition, positionAfter, secondsOf } from "./positions.ts";
import { shareQueries } from "./shared-query.ts";
import type { Turns } from "./turns.ts";

/** The server answers after this time if there is nothing new, in milliseconds. */
const IDLE_MS = 1_000;
const CAUGHT_UP_MS = 10;
/** Readers that resume within this time do not wait for those that read further back. */
const NEAR_S = 60;
/** The stream of the latest changes does not wait for reads of the past. */
const atOnce: Turns = (_, work) => work();
/** Changes that are read at once. */
const MAX_READ = 256;
/** A position may be this far ahead: a new primary may be a little behind what another process was told. */
const MAX_AHEAD_S = 600;
/** The longest time to search the oplog for the next change. */
const MAX_TIMEOUT_MS = 600_000;
/**
 * The server refuses a position in less time. Finding the next change may take longer, as it may be far off among the
 * changes of all databases.
 */
const PATIENCE_MS = 2_000;

/**
 * The token can't be resumed from: it is invalid (FailedToParse, Overflow, InvalidResumeToken, and assertions of the
 * server, which have numbers beyond all named codes), or the oplog has lost what follows (ChangeStreamFatalError,
 * ChangeStreamHistoryLost).
 */
const NO_RESUMING = new Set([9, 15, 260, 280, 286]);
const MAX_NAMED_CODE = 14_000;
/** A timeout of ours or of the server (MaxTimeMSExpired): the next attempt may need longer. */
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
  /** The database on the client for change streams. */
  readonly streams: () => Db;
  readonly turns: Clients["turns"];
  readonly timing: Timing;
  readonly run: Run;
  readonly report: Report;
  readonly log: EngineContext["log"];
}

export function mongoChanges({ declaration, database, streams, turns, timing, run, report, log }: Parts): MongoChanges {
  const view = viewOf<Doc>(declaration);
  if (!view) return noChanges(declaration.name);
  const { shown } = view;
  const open = (after: Position, idleMs: number, timeoutMs: number) =>
    openStream(streams(), declaration.name, after, { maxAwaitTimeMS: idleMs, maxTimeMS: timeoutMs });

  function changeOf({ _id, documents: [bytes], wallTime, clusterTime }: Document): Change<object> | undefined {
    const stored = readStored(bytes, declaration);
    const news = toldBy(stored, shown) ?? restored(shown(stored.doc));
    const time = wallTime?.getTime() ?? clusterTime.getHighBitsUnsigned() * 1000;
    return news && frozen({ ...news, _id: stored.doc._id, rev: stored.doc.rev, time, position: _id._data });
  }

  /** Reads on from a position until `isOver`; after a failure it opens the stream again. */
  function readFrom(begin: Position, idleMs: number, inTurn: Turns, isOver: () => boolean): Past<object> {
    let position = begin;
    let stream: ChangeStream | undefined;
    /** Until the stream has answered, the driver could not end its cursor at the server, which would keep it for ten minutes. */
    let isOpening = false;
    const closing = new AbortController();
    const { signal } = closing;

    async function attempt(timeoutMs: number) {
      isOpening = !stream;
      stream ??= open(position, idleMs, timeoutMs);
      const opened = stream; // it may be closed meanwhile
      const events: Document[] = [];
      for (let more = true; more; ) {
        const event = await withTimeout(timeoutMs, opened.tryNext());
        if (event) events.push(event);
        more = event !== null && events.length < MAX_READ && opened.bufferedCount() > 0;
      }
      // The server ends a stream for one reason alone. From then on the driver answers at once that there is nothing new.
      if (events.length === 0 && opened.closed) throw new Expired(new Error("the collection was dropped or renamed"));
      // Who was told of a change reads nothing older.
      database.noteTime({ operationTime: events.at(-1)?.clusterTime });
      position = (opened.resumeToken as { _data?: string } | undefined)?._data ?? position;
      return { changes: readable(events, changeOf, report).filter((change) => change !== undefined), position };
    }
    function drop(): void {
      // Not awaited: it may hang like any other call.
      stream?.close().catch(() => {});
      stream = undefined;
      isOpening = false;
    }
    function close(): void {
      closing.abort();
      if (!isOpening) drop();
    }

    return {
      async read() {
        let timeoutMs = TIMEOUT_MS.repeatable;
        for (let round = 0; !signal.aborted && !isOver(); round++) {
          try {
            const found = await inTurn(signal, () => attempt(timeoutMs));
            isOpening = false;
            if (signal.aborted) drop();
            return found;
          } catch (error) {
            drop();
            if (signal.aborted) break;
            if (!(error instanceof MongoError)) throw error;
            if (isExpired(error)) throw new Expired(error);
            if (error.code === UNAUTHORIZED) throw new Unavailable(false, error);
            if (isTooSlow(error)) timeoutMs = Math.min(timeoutMs * 2, MAX_TIMEOUT_MS);
          }
          await backOff(round, "failed", timing);
        }
        return { changes: [], position };
      },
      close,
    };
  }

  // A thousand readers that come back at once, as after a restart, cause one query.
  const sharedNow = shareQueries((_: "now", limits) => now(database, declaration.name, limits));
  const nowWithin = (options: CallOptions | undefined, ask = sharedNow) =>
    run(options, (call) => retryUntilDeadline(call, timing, () => ask("now", call)));

  let stop = new AbortController();
  const feed: Feed<object> = createFeed<object>(
    {
      now: (options) => nowWithin(options),

      async past(after, options) {
        // The server would wait for a position in the future.
        if (!isPosition(after) || secondsOf(after) > secondsOf(tail.position) + MAX_AHEAD_S) throw new Expired();
        return run(options, async (call) => {
          let isOpen = false;
          const inTurn = secondsOf(tail.position) - secondsOf(after) < NEAR_S ? turns.near : turns.far;
          const past = readFrom(after, CAUGHT_UP_MS, inTurn, () => options.signal.aborted || (call.isOver && !isOpen));
          // Only the server knows whether it can resume there. A position that it has not refused in time is read on,
          // however long it takes.
          let first: Promise<Read<object>> | undefined = past.read();
          const over = new AbortController();
          await Promise.race([first, timing.sleep(PATIENCE_MS, over.signal)]).finally(() => over.abort());
          // The clock can be past the deadline before its timer fires. The caller gets an error then, and would never
          // close this past.
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
        started.catch(() => {}); // rejects for the readers that wait, if there still are any
        return (options) => run(options, () => started);
      },
      stop: () => stop.abort(),
    },
    "",
    timing.sleep,
  );
  const { tail } = feed;

  async function start(signal: AbortSignal): Promise<void> {
    const begin = await nowWithin(undefined, async (...asked) => {
      if (signal.aborted) throw new Unavailable(false); // all readers have left; one that still waits gets this error
      return sharedNow(...asked);
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
        // Others get their turn, however soon the driver answers.
        const [{ changes, position }] = await Promise.all([latest.read(), turn()]);
        if (signal.aborted) return;
        for (const change of changes) tail.add(change, encode(change.shown as Fields).length);
        tail.moveTo(position);
        if (changes.length > 0) feed.wake();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Expired)
        log.warn(`all who watch ${declaration.name} have to begin anew: ${(error.cause as Error).message}`);
      feed.end(error);
    } finally {
      latest.close();
    }
  }

  return { changes: feed.changes, forget: async () => 0, end: () => feed.end() };
}

/** The change event of a document that was restored from a backup, when its last change did not show. */
const restored = (shown: object | undefined): ShownChange | undefined => shown && { type: "created", shown };

/** The current position, by a majority read: after all that this process can have seen, before its later reads. */
async function now(database: Database, collection: string, limits: ReadLimits): Promise<Position> {
  return database.inSession(async (session) => {
    await find(database, collection, { filter: {}, limit: 1, batchSize: 2 }, { session, limits });
    const { operationTime } = session;
    if (!operationTime) throw new MongoError("the server does not tell its time");
    return positionAfter(operationTime);
  });
}

interface Limits {
  /** How long the server waits for something new. */
  readonly maxAwaitTimeMS: number;
  /** The limit of the command that opens the stream. The driver could not end that command: its cursor has no id yet. */
  readonly maxTimeMS: number;
}

function openStream(db: Db, collection: string, after: Position, limits: Limits): ChangeStream {
  const pipeline = [
    { $match: { operationType: { $in: ["insert", "replace"] }, ...TELLS } },
    // Wrapped in an array, because the driver can leave the items of an array as bytes.
    { $project: { wallTime: 1, clusterTime: 1, documents: ["$fullDocument"] } },
  ];
  const options = { ...limits, batchSize: MAX_READ, fieldsAsRaw: { documents: true } };
  return db.collection(collection).watch(pipeline, { ...options, ...beginAfter(after) });
}
