/**
 * The changes of a collection, from change streams: one that all readers of this process share, open while there are any,
 * and one for each reader that begins in the past, until it has caught up.
 */
import { setImmediate as turn } from "node:timers/promises";
import { MongoError } from "mongodb";
import { encode, type Fields } from "../document/codec.ts";
import { viewOf } from "../document/fold.ts";
import { createFeed, type Feed, noChanges, type Read } from "../engine/feed.ts";
import type { EngineContext } from "../open.ts";
import { type CallOptions, type Doc, Expired, type Position, Unavailable } from "../port.ts";
import { changeStreams, isPosition, positionAfter, type StreamOptions, secondsOf } from "./change-stream.ts";
import type { Clients } from "./clients.ts";
import { type Database, find } from "./database.ts";
import { type ReadLimits, type Run, retryUntilDeadline, type Timing } from "./deadline.ts";
import { shareQueries, type Turns } from "./shared-query.ts";

/** The server answers after this time if there is nothing new, in milliseconds. */
const IDLE_MS = 1_000;
const CAUGHT_UP_MS = 10;
/** Readers that resume within this time do not wait for those that read further back. */
const NEAR_S = 60;
/** The stream of the latest changes does not wait for reads of the past. */
const atOnce: Turns = (_, work) => work();
/** A position may be this far ahead: a new primary may be a little behind what another process was told. */
const MAX_AHEAD_S = 600;
/**
 * The server refuses a position in less time. Finding the next change may take longer, as it may be far off among the
 * changes of all databases.
 */
const PATIENCE_MS = 2_000;

export type MongoChanges = ReturnType<typeof mongoChanges>;

export interface ChangesParts extends StreamOptions {
  readonly turns: Clients["turns"];
  readonly timing: Timing & Pick<EngineContext, "log">;
  readonly run: Run;
}

export function mongoChanges(parts: ChangesParts) {
  const { declaration, database, turns, timing, run } = parts;
  const view = viewOf<Doc>(declaration);
  if (!view) return noChanges(declaration.name);
  const readFrom = changeStreams(parts, view);

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
        timing.log.warn(`all who watch ${declaration.name} have to begin anew: ${(error.cause as Error).message}`);
      feed.end(error);
    } finally {
      latest.close();
    }
  }

  return { changes: feed.changes, forget: async () => 0, end: () => feed.end() };
}

/** The current position, by a majority read: after all that this process can have seen, before its later reads. */
async function now(database: Database, collection: string, limits: ReadLimits): Promise<Position> {
  return database.inSession(async (session) => {
    await find(database, collection, { filter: {}, limit: 1, batchSize: 2 }, { session, limits });
    const { operationTime } = session;
    if (!operationTime) throw new MongoError("the server does not tell its time");
    return positionAfter(operationTime);
  });
}
