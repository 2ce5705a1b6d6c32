/** Bounds the memory for answers that wait until strangers read them, all of them together, and the time for clients that don't read. */
import type { ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import { type Clock, realTime } from "@petstore/runtime/clock";
import type { Logger } from "@petstore/runtime/log";
import type { Connection } from "./connections.ts";
import type { OnePortLimits } from "./limits.ts";

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
