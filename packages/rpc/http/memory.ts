/**
 * Bounds the memory that strangers take, all of them together: for requests until nothing is kept of them, and for answers that
 * wait until their client reads them. And the time limit for clients that don't read.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import { type Clock, realTime } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import type { Connection } from "./connections.ts";
import type { OnePortLimits } from "./limits.ts";

/** The message to a client whose request is refused for lack of memory. */
export const TOO_MANY_UNDER_WAY = "There are too many requests under way. Nothing was done. Try again in a second.";

/** What a request takes, with its header fields and the work for it. Measured with Node 26, on the heap and outside it. */
export const REQUEST_BYTES = 64 * 1024;
/** Requests that may be open. Each takes some 12 KiB, even if it is refused, and its client may not read that. */
export const OPEN_REQUESTS = 10_000;
/** Bytes of a body exist twice, as received and as used. */
const COPIES = 2;

/** What one request takes of the budget. */
class Hold {
  readonly budget: Budget;
  /** Beyond the budget it counts nothing. */
  readonly isRefused: boolean;
  bytes = 0;
  /** The request is not answered yet, or work is still done for it. */
  isOpen = true;
  works = 0;

  constructor(budget: Budget, bytes: number) {
    this.budget = budget;
    budget.open++;
    this.isRefused = budget.bytes + bytes > budget.maxBytes;
    if (!this.isRefused) this.add(bytes);
  }
  add(bytes: number): void {
    this.bytes += bytes;
    this.budget.bytes += bytes;
  }
  /** To be called once, when the request is answered. */
  release(): void {
    this.budget.open--;
    this.isOpen = false;
    this.giveBackIfDone();
  }
  giveBackIfDone(): void {
    if (!this.isOpen && this.works === 0) this.add(-this.bytes);
  }
}

// Stored on the request itself: a WeakMap cost a tenth of the time of a refusal, most of it in garbage collection.
const HOLD: unique symbol = Symbol("hold");
type Held = object & { [HOLD]?: Hold };

/** Counts the requests that are open, too, also those that were refused and whose client does not read that. */
export const createRequestBudget = (maxBytes: number) => ({ maxBytes, bytes: 0, open: 0 });
type Budget = ReturnType<typeof createRequestBudget>;

/**
 * Counts a request with the body that it announces, until `release` is called and the work for it is done. Beyond the budget
 * it is refused (`isRefused`), and counts nothing. A body that announces no length counts as it is read (`growRequest`).
 */
export function holdRequest(budget: Budget, request: IncomingMessage, bodyBytes: number): Hold {
  const announced = Number(request.headers["content-length"] ?? 0);
  const hold = new Hold(budget, REQUEST_BYTES + COPIES * Math.min(announced, bodyBytes));
  (request as Held)[HOLD] = hold;
  return hold;
}

/** Whether a request is refused, for there is no memory for its work. */
export const isRefused = (request: object): boolean => (request as Held)[HOLD]?.isRefused === true;

/** Counts bytes that are read for a request beyond those that it announced. Returns false beyond the budget. */
export function growRequest(request: object, bytes: number): boolean {
  const hold = (request as Held)[HOLD];
  if (!hold?.isOpen) return true;
  if (hold.budget.bytes + COPIES * bytes > hold.budget.maxBytes) return false;
  hold.add(COPIES * bytes);
  return true;
}

/** Stops counting a request here, for it is counted elsewhere. */
export function releaseRequest(request: object): void {
  const hold = (request as Held)[HOLD];
  hold?.add(-hold.bytes);
}

/** Counts a request for as long as work is done for it, even after its connection was closed. */
export function whileWorking(request: object, work: () => void | Promise<void>): void | Promise<void> {
  const hold = (request as Held)[HOLD];
  if (!hold) return work();
  hold.works++;
  const end = () => {
    hold.works--;
    hold.giveBackIfDone();
  };
  const done = work();
  if (done instanceof Promise) return done.finally(end);
  end();
}

/** How often what waits is added up, in milliseconds. */
const SWEEP_MS = 250;

/** The client of one connection. */
class Reader {
  readonly connection: Connection;
  readonly session: ServerHttp2Session | undefined;
  readonly open = new Set<ServerResponse>();
  /** The session's window before these answers, by which it is known how much of them the client has not taken. */
  readonly windowBefore: number;
  /** Bytes that may wait in the connection of answers that were reset, until a ping sent behind them is answered. */
  left = 0;
  isPinged = false;
  /** What was last seen of the bytes that wait and of the session's window, and when that last changed. */
  bytes = 0;
  window: number | undefined;
  changedAt: number;

  constructor(connection: Connection, session: ServerHttp2Session | undefined, now: number) {
    this.connection = connection;
    this.session = session;
    this.windowBefore = session ? windowOf(session) : 0;
    this.changedAt = now;
  }
}

/**
 * Ends the connections with the most bytes while more than `waitingBytes` wait in all, and one of HTTP/2 that takes nothing
 * for `writeMs`. Its streams count together: as long as the client takes bytes of one, the others may wait. (On HTTP/1.1
 * that is `whenStalled`, for Node knows how much of one write was taken. On HTTP/2 any other traffic would renew its timer.)
 */
export function limitUnread({ writeMs, waitingBytes }: OnePortLimits, log?: Pick<Logger, "debug">) {
  const { clock } = realTime;
  const stalled = `nothing was taken of an answer for ${writeMs} ms`;
  const readers = new Map<Connection, Reader>();
  let timer: NodeJS.Timeout | undefined;

  function sweep(): void {
    const now = clock();
    const waiting = [...readers.values()].filter((reader) => measure(reader, now) > 0 && !reader.connection.isPeer);
    for (const reader of waiting) if (reader.session && now - reader.changedAt > writeMs) end(reader, stalled);
    let total = waiting.reduce((sum, { bytes }) => sum + bytes, 0);
    if (total <= waitingBytes) return;
    for (const reader of waiting.sort((a, b) => b.bytes - a.bytes)) {
      end(reader, "too many bytes of answers wait, and most of them here");
      total -= reader.bytes;
      if (total <= waitingBytes) return;
    }
  }

  function measure(reader: Reader, now: number): number {
    const { open, session, left } = reader;
    let bytes = left;
    for (const { writableLength } of open) bytes += writableLength;
    const window = bytes === 0 || !session || session.destroyed ? undefined : windowOf(session);
    if (bytes !== reader.bytes || window !== reader.window) Object.assign(reader, { bytes, window, changedAt: now });
    return bytes;
  }

  function end({ connection }: Reader, why: string): void {
    log?.debug({ address: connection.address }, why);
    connection.end();
  }

  /** An answer was reset. What of it was passed on to the connection still waits there. */
  function leave(reader: Reader, session: ServerHttp2Session): void {
    reader.left = Math.max(reader.left, reader.windowBefore - windowOf(session));
    if (reader.left <= 0 || reader.isPinged) return;
    reader.isPinged = true;
    session.ping((error) => {
      reader.isPinged = false;
      if (error) return;
      reader.left = 0;
      drop(reader);
    });
  }

  function drop({ connection, open, left }: Reader): void {
    if (open.size > 0 || (left > 0 && !connection.isClosed)) return;
    readers.delete(connection);
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  /** Returns a function to call when the response is closed. */
  return (response: ServerResponse, connection: Connection, session: ServerHttp2Session | undefined): (() => void) => {
    const reader = readers.get(connection) ?? new Reader(connection, session, clock());
    readers.set(connection, reader);
    reader.open.add(response);
    if (!session) whenStalled(response, writeMs, () => end(reader, stalled), clock);
    timer ??= setInterval(sweep, SWEEP_MS).unref();
    return () => {
      reader.open.delete(response);
      if (session && !response.writableFinished) {
        // Nothing more is sent on a session that is over, but Node waits for its client to take what was.
        if (session.destroyed) connection.end();
        else leave(reader, session);
      }
      drop(reader);
    };
  };
}

const windowOf = ({ state }: ServerHttp2Session): number => state.remoteWindowSize ?? 0;

/**
 * How often the timer of the socket runs out within the limit. Where a part of a write was taken, Node starts the timer over,
 * but only when it runs out: with one long timer the limit could be twice as long.
 */
const LOOKS = 5;

/** Calls `giveUp` when bytes of an answer of HTTP/1.1 have waited for `ms`, or up to a fifth longer, and none was taken. */
export function whenStalled(response: ServerResponse, ms: number, giveUp: () => void, clock: Clock): void {
  const step = ms / LOOKS;
  let quiet = 0;
  let written = 0;
  let lookedAt = 0;
  response.setTimeout(step, () => {
    const { socket } = response;
    if (!socket || response.writableLength === 0) return; // the next write starts the timer
    const before = { written, lookedAt };
    written = socket.bytesWritten - socket.writableLength;
    lookedAt = clock();
    const isTaken = written !== before.written || lookedAt - before.lookedAt >= 2 * step - 1;
    quiet = isTaken ? 1 : quiet + 1;
    if (quiet >= LOOKS) giveUp();
    else socket.setTimeout(step);
  });
}
