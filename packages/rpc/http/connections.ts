/** What a server owes to itself for each connection and each request, whichever protocol they speak. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "@petstore/runtime/log";
import { isGone } from "connect-transcoder/server/gone";
import { type AnswerLimits, createAnswers, type Taker } from "./answers.ts";
import { callerNetwork } from "./caller-network.ts";
import type { Secure } from "./handshakes.ts";
import { countBody, limitRequestMemory, releaseRequest } from "./request-memory.ts";

export interface ConnectionLimits extends AnswerLimits {
  /** Connections at a time. */
  readonly connections: number;
  /** Of these, from one address, without those of the system's own processes. */
  readonly connectionsPerAddress: number;
  /** Bytes that strangers' requests take in all, until they are answered; see `limitRequestMemory`. */
  readonly requestBytes: number;
}

export const defaultConnectionLimits: ConnectionLimits = {
  connections: 1000,
  connectionsPerAddress: 500,
  requestBytes: 64 * 1024 * 1024,
  writeMs: 30_000,
  waitingBytes: 64 * 1024 * 1024,
};

export interface GuardOptions {
  /** Whether a request comes from one of the system's own processes, and its connection with it. By default none does. */
  readonly knowsPeer?: ((request: IncomingMessage) => boolean) | undefined;
  /** What connections go through before the server is told of them: a handshake of TLS. By default nothing. */
  readonly secure?: Secure | undefined;
  readonly log?: Logger | undefined;
}

export interface Connections {
  /**
   * To be called first with every request that does not come through the server's event "request". False where its
   * connection was given up.
   */
  follow(request: IncomingMessage, response: ServerResponse): boolean;
  /** The connection of a request is one of the system's own processes. */
  isPeer(request: IncomingMessage): boolean;
  /** Bytes of answers that wait to be taken. */
  waiting(): number;
  /** Bytes that requests take. */
  held(): number;
}

interface Connection extends Taker {
  taken: () => number;
  pending: () => number;
  readonly address: string;
  isPeer: boolean;
  /** It has proved so by itself, whatever its requests show. */
  isProven: boolean;
  /** Requests without an answer that have arrived completely: something is done for them. */
  served: number;
  /** When something was done for it last, counted in such moments of the server. */
  restedAt: number;
  /** Of these, streams, which are bounded by themselves: as long as there is one, the connection does not count. */
  streams: number;
  readonly beginStream: () => void;
  readonly endStream: () => void;
}

const KEY: unique symbol = Symbol("connection");
type Marked = object & { [KEY]?: Connection | undefined };
const connectionOf = (request: IncomingMessage) => (request.socket as Marked | null)?.[KEY];

/** The network that a request came from, see `callerNetwork`. */
export const networkOf = (request: IncomingMessage): string => connectionOf(request)?.address ?? "";

/** The connection of a request has proved to be one of the system's own processes by its certificate. */
export const isProven = (request: IncomingMessage): boolean => connectionOf(request)?.isProven === true;

/**
 * TCP looks that often whether a client with a stream is there, when it hears nothing from it. One that was cut off is given
 * up within 14 seconds where nothing is on its way to it; else the system tries for as long as it is set to.
 */
const PROBE = { enable: true, initialDelay: 5_000, interval: 3_000, count: 3 };

/**
 * From now on the client of a connection takes what is data, by that count. Of all bytes only those count that it took while some
 * waited in the socket, as a large window lets them: who opens no window of HTTP/2 is sent frames all the same.
 */
export function countData(socket: Socket, dataTaken: () => number): void {
  const connection = (socket as Marked)[KEY];
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
 * A request is answered by a stream, of which there are no more than so many: it takes nothing any more of what is shared
 * out to short ones, neither memory nor a connection. A request that is over is none: nobody would tell that it ends.
 */
export function countAsStream(request: IncomingMessage, response: ServerResponse): void {
  releaseRequest(request);
  const connection = connectionOf(request);
  if (!connection || isGone(response)) return;
  connection.beginStream();
  response.on("close", connection.endStream);
}

/**
 * Takes care of the connections of a server.
 *
 * - Their number is bounded. A new one above the bound takes the place of the one for which nothing is done for longest:
 *   idle, or with a request that still arrives. Where something is done for all, the new one is closed.
 * - Their answers are bounded, see `createAnswers`, and so is what strangers' requests take, see `limitRequestMemory`.
 * - What breaks off, whenever it does, is no uncaught error: sockets, requests and responses have a listener for errors
 *   from their first moment to their last. Others come and go, and node emits an error that comes in between.
 */
export function guardConnections(
  server: Server,
  limits: ConnectionLimits,
  { knowsPeer = () => false, secure, log }: GuardOptions = {},
): Connections {
  const answers = createAnswers(limits);
  const memory = limitRequestMemory(limits.requestBytes);
  const all = new Set<Connection>();
  /** Of strangers, those that carry streams. */
  let streaming = 0;
  /** Of strangers, by address. */
  const strangers = new Map<string, number>();
  let moments = 0;

  const take = server.listeners("connection") as ((socket: Socket) => void)[];
  server.removeAllListeners("connection");
  const begin = server.listeners("request") as ((request: IncomingMessage, response: ServerResponse) => void)[];
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    if (!follow(request, response)) return;
    for (const listener of begin) listener.call(server, request, response);
  });
  server.on("connection", (socket: Socket) => {
    socket.on("error", ignore);
    if (!admit(socket)) return void socket.destroy();
    if (!secure) return serveOn(socket);
    secure(socket, (secured, isPeer) => {
      secured.on("error", ignore);
      const connection = (socket as Marked)[KEY];
      (secured as Marked)[KEY] = connection;
      if (connection && isPeer) {
        connection.isProven = true;
        trust(connection);
      }
      serveOn(secured);
    });
  });
  function serveOn(socket: Socket): void {
    for (const listener of take) listener.call(server, socket);
  }

  function admit(socket: Socket): boolean {
    const address = callerNetwork(socket.remoteAddress);
    const same = strangers.get(address) ?? 0;
    if (same >= limits.connectionsPerAddress && !makeRoom((one) => one.address === address)) return false;
    if (all.size - streaming >= limits.connections && !makeRoom(() => true)) return false;
    const giveUp = (why: string) => {
      log?.debug({ address, why }, "a connection was given up");
      close();
      socket.destroy();
    };
    const connection: Connection = {
      address,
      isPeer: false,
      isProven: false,
      served: 0,
      restedAt: 0,
      streams: 0,
      beginStream() {
        // Of HTTP/2 a connection is gone before its streams are.
        if (!all.has(connection)) return;
        socket.setKeepAlive(PROBE);
        if (connection.streams++ > 0 || connection.isPeer) return;
        discount(connection);
        streaming++;
      },
      endStream() {
        if (--connection.streams > 0 || connection.isPeer || !all.has(connection)) return;
        streaming--;
        count(connection);
        rest(connection);
      },
      giveUp,
      taken: () => bytesTaken(socket),
      pending: () => 0, // its answers end when they are taken
    };
    const close = () => {
      if (!all.delete(connection)) return;
      answers.forget(connection);
      memory.forget(connection);
      leave(connection);
    };
    (socket as Marked)[KEY] = connection;
    all.add(connection);
    count(connection);
    rest(connection);
    socket.on("close", close);
    return true;
  }

  /** Looked for when it is needed: to keep them in order would cost every request more. */
  function makeRoom(isAmong: (connection: Connection) => boolean): boolean {
    let longest: Connection | undefined;
    for (const one of all) {
      if (one.isPeer || one.served > 0 || !isAmong(one)) continue;
      if (!longest || one.restedAt < longest.restedAt) longest = one;
    }
    longest?.giveUp("others need its place");
    return longest !== undefined;
  }

  /** It may be closed for another, after those that rest already. */
  function rest(connection: Connection): void {
    connection.restedAt = ++moments;
  }
  function count({ address }: Connection): void {
    strangers.set(address, (strangers.get(address) ?? 0) + 1);
  }
  function discount({ address }: Connection): void {
    const left = (strangers.get(address) ?? 0) - 1;
    if (left > 0) strangers.set(address, left);
    else strangers.delete(address);
  }
  /** It is no stranger's connection any more. */
  function leave(connection: Connection): void {
    if (connection.isPeer) return;
    if (connection.streams > 0) streaming--;
    else discount(connection);
  }

  function trust(connection: Connection): void {
    leave(connection);
    connection.isPeer = true;
  }

  function follow(request: IncomingMessage, response: ServerResponse): boolean {
    request.on("error", ignore);
    response.on("error", ignore);
    const connection = connectionOf(request);
    if (!connection) return true;
    if (!all.has(connection)) return false;
    if (!connection.isPeer && knowsPeer(request)) trust(connection);
    if (!connection.isPeer) memory.hold(connection, request, response);
    if (hasBody(request)) serveWhenArrived(connection, request, response);
    else {
      connection.served++;
      response.on("close", () => served(connection));
    }
    answers.follow(connection, response);
    return true;
  }

  function served(connection: Connection): void {
    connection.served--;
    rest(connection);
  }
  function serveWhenArrived(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    let arrived = false;
    const arrive = () => {
      arrived = true;
      connection.served++;
    };
    countBody(request);
    rest(connection);
    request.once("end", arrive);
    response.on("close", () => {
      request.off("end", arrive);
      if (arrived) served(connection);
      else rest(connection);
    });
  }

  return {
    follow,
    isPeer: (request) => connectionOf(request)?.isPeer === true,
    waiting: answers.waiting,
    held: memory.held,
  };
}

const ignore = () => {};

/**
 * Bytes of a socket that the system has taken. Node counts by whole writes in what it documents, an answer mostly is one,
 * and HTTP/2 writes past the socket; its own time-out of sockets looks at the handle's queue, too.
 */
export function bytesTaken(socket: Socket): number {
  const { bytesWritten = 0, writeQueueSize = 0 } =
    (socket as { _handle?: { bytesWritten?: number; writeQueueSize?: number } | null })._handle ?? {};
  return bytesWritten - writeQueueSize;
}

function hasBody({ stream, headers }: IncomingMessage & { stream?: { endAfterHeaders?: boolean } }): boolean {
  if (stream) return stream.endAfterHeaders !== true;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
