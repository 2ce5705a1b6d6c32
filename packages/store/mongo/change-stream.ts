/**
 * Change streams of a collection. A stream delivers what a majority has stored, with the documents as they were written.
 * Positions are its resume tokens. A token is in hexadecimal and begins with the time of its event, so that tokens can be
 * compared and sorted (https://www.mongodb.com/docs/manual/changeStreams/#resume-tokens). A position that is only this beginning
 * is the place before all events of that time.
 */
import {
  type ChangeStream,
  type Db,
  type Document,
  MongoError,
  MongoNetworkTimeoutError,
  MongoServerError,
  Timestamp,
} from "mongodb";
import { frozen, type ShownChange, type View } from "../document/fold.ts";
import type { Declaration } from "../engine/collections.ts";
import type { Past } from "../engine/feed.ts";
import { type Report, readable } from "../engine/queries.ts";
import { type Change, type Doc, Expired, type Position, Unavailable } from "../port.ts";
import { UNAUTHORIZED } from "./connect.ts";
import type { Database } from "./database.ts";
import { backOff, TIMEOUT_MS, type Timing, withTimeout } from "./deadline.ts";
import { readStored, TELLS, toldBy } from "./operation-log.ts";
import type { Turns } from "./shared-query.ts";

const MAX_READ = 256;
/** The longest time to search the oplog for the next change. */
const MAX_TIMEOUT_MS = 600_000;
const TIME = /^82([0-9A-F]{8})([0-9A-F]{8})/;
const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, "0");

export const isPosition = (position: unknown): position is Position =>
  typeof position === "string" && position.length <= 1024 && /^82[0-9A-F]{16,}$/.test(position);

export const secondsOf = (position: Position): number => Number.parseInt(TIME.exec(position)?.[1] ?? "", 16);

/** After all events of that time. */
export const positionAfter = (time: Timestamp): Position =>
  `82${hex(time.getHighBitsUnsigned())}${hex(time.getLowBitsUnsigned() + 1)}`;

function beginAfter(position: Position) {
  const [time = "", seconds = "", increment = ""] = TIME.exec(position) ?? [];
  return time.length === position.length
    ? { startAtOperationTime: new Timestamp({ t: Number.parseInt(seconds, 16), i: Number.parseInt(increment, 16) }) }
    : { resumeAfter: { _data: position } };
}

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

export interface StreamOptions {
  readonly declaration: Declaration;
  readonly database: Database;
  /** The database on the client for change streams. */
  readonly streams: () => Db;
  readonly timing: Timing;
  readonly report: Report;
}

interface Limits {
  /** How long the server waits for something new. */
  readonly maxAwaitTimeMS: number;
  /** The limit of the command that opens the stream. The driver could not end that command: its cursor has no id yet. */
  readonly maxTimeMS: number;
}

export function changeStreams({ declaration, database, streams, timing, report }: StreamOptions, { shown }: View<Doc>) {
  function changeOf({ _id, documents: [bytes], wallTime, clusterTime }: Document): Change<object> | undefined {
    const stored = readStored(bytes, declaration);
    const news = toldBy(stored, shown) ?? restored(shown(stored.doc));
    const time = wallTime?.getTime() ?? clusterTime.getHighBitsUnsigned() * 1000;
    return news && frozen({ ...news, _id: stored.doc._id, rev: stored.doc.rev, time, position: _id._data });
  }

  function open(after: Position, limits: Limits): ChangeStream {
    const pipeline = [
      { $match: { operationType: { $in: ["insert", "replace"] }, ...TELLS } },
      // Wrapped in an array, because the driver can leave the items of an array as bytes.
      { $project: { wallTime: 1, clusterTime: 1, documents: ["$fullDocument"] } },
    ];
    const options = { ...limits, batchSize: MAX_READ, fieldsAsRaw: { documents: true } };
    return streams()
      .collection(declaration.name)
      .watch(pipeline, { ...options, ...beginAfter(after) });
  }

  /** Reads on from a position until `isOver`; after a failure it opens the stream again. */
  return function readFrom(begin: Position, idleMs: number, inTurn: Turns, isOver: () => boolean): Past<object> {
    let position = begin;
    let stream: ChangeStream | undefined;
    /** Until the stream has answered, the driver could not end its cursor at the server, which would keep it for ten minutes. */
    let isOpening = false;
    const closing = new AbortController();
    const { signal } = closing;

    async function attempt(timeoutMs: number) {
      isOpening = !stream;
      stream ??= open(position, { maxAwaitTimeMS: idleMs, maxTimeMS: timeoutMs });
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
  };
}

/** The change event of a document that was restored from a backup, when its last change did not show. */
const restored = (shown: object | undefined): ShownChange | undefined => shown && { type: "created", shown };
