/** One connection of a server, as it can be found from any of its requests. */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Taker } from "./answers.ts";

export interface Connection extends Taker {
  taken: () => number;
  pending: () => number;
  readonly address: string;
  isPeer: boolean;
  /** A client certificate has proved that it is a peer, whatever its requests show. */
  isProven: boolean;
  /** Unanswered requests that have arrived completely, so that the server works on them. */
  served: number;
  /** When the server last had work for it, as the value of a counter. */
  restedAt: number;
  /** Open streams, which have a limit of their own: a stranger's connection that has one does not count. */
  streams: number;
  readonly beginStream: () => void;
  readonly endStream: () => void;
}

const KEY: unique symbol = Symbol("connection");
type Marked = object & { [KEY]?: Connection | undefined };

/** Attaches the connection to its socket, by which its requests find it. */
export function mark(socket: Socket, connection: Connection | undefined): void {
  (socket as Marked)[KEY] = connection;
}
export const connectionOn = (socket: Socket | null): Connection | undefined => (socket as Marked | null)?.[KEY];
export const connectionOf = (request: IncomingMessage): Connection | undefined => connectionOn(request.socket);

/** The network that a request came from, see `callerNetwork`. */
export const networkOf = (request: IncomingMessage): string => connectionOf(request)?.address ?? "";

/** Whether the connection of a request has proved by its certificate that it is one of the system's own processes. */
export const isProven = (request: IncomingMessage): boolean => connectionOf(request)?.isProven === true;

/**
 * From now on `dataTaken` tells how much the client of a connection has taken. Other bytes count only if they were taken
 * while bytes waited in the socket, as they do with a large window: a client that opens no HTTP/2 window still gets frames.
 */
export function countData(socket: Socket, dataTaken: () => number): void {
  const connection = connectionOn(socket);
  if (!connection) return;
  connection.pending = () => socket.writableLength;
  const { taken } = connection;
  let [before, waits, meanwhile] = [taken(), false, 0];
  connection.taken = () => {
    const now = taken();
    const waitsNow = socket.writableLength > 0;
    if (waits || waitsNow) meanwhile += now - before;
    [before, waits] = [now, waitsNow];
    return meanwhile + dataTaken();
  };
}

/**
 * Bytes of a socket that the kernel has taken. Node's documented counter counts whole writes, and most responses are one
 * write; HTTP/2 bypasses it. Node's own socket timeout looks at the handle's queue, too.
 */
export function bytesTaken(socket: Socket): number {
  const { bytesWritten = 0, writeQueueSize = 0 } =
    (socket as { _handle?: { bytesWritten?: number; writeQueueSize?: number } | null })._handle ?? {};
  return bytesWritten - writeQueueSize;
}
