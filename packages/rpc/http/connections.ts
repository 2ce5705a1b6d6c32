/**
 * Limits for the connections and requests of a server, whichever protocol they use. A stranger is a client that has not
 * proved to be one of the system's own processes, which are called peers.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "@petstore/runtime/log";
import { isGone } from "connect-transcoder/server/gone";
import { type AnswerLimits, createAnswers } from "./answers.ts";
import { callerNetwork } from "./caller-network.ts";
import { bytesTaken, type Connection, connectionOf, connectionOn, mark } from "./connection.ts";
import type { Secure } from "./handshakes.ts";
import { countBody, limitRequestMemory, releaseRequest } from "./request-memory.ts";

export interface ConnectionLimits extends AnswerLimits {
  /** Connections at a time, without those of strangers that carry a stream. */
  readonly connections: number;
  /** Of these, strangers' connections from one address, see `callerNetwork`. */
  readonly connectionsPerAddress: number;
  /** Bytes that strangers' requests may take in all, until they are answered; see `limitRequestMemory`. */
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
  /** Whether a request, and so its connection, comes from one of the system's own processes. By default none does. */
  readonly knowsPeer?: ((request: IncomingMessage) => boolean) | undefined;
  /** The TLS handshake that a connection completes before the server sees it. By default there is none. */
  readonly secure?: Secure | undefined;
  readonly log?: Logger | undefined;
}

export interface Connections {
  /**
   * Must be called first for every request that does not arrive through the server's event "request". Returns false if its
   * connection is already closed.
   */
  follow(request: IncomingMessage, response: ServerResponse): boolean;
  /** Whether a request's connection belongs to one of the system's own processes. */
  isPeer(request: IncomingMessage): boolean;
  /** Bytes of responses that wait to be taken. */
  waiting(): number;
  /** Bytes that strangers' requests take. */
  held(): number;
}

/**
 * TCP keep-alive for a silent client with a stream. A client that was cut off is given up within 14 seconds if no data is in
 * flight to it; otherwise the kernel retransmits for as long as it is configured to.
 */
const PROBE = { enable: true, initialDelay: 5_000, interval: 3_000, count: 3 };

/**
 * Counts a response as a stream. Streams have a limit of their own, so this one no longer takes from what short requests
 * share, neither memory nor a connection. A response that is already closed does not count, for its end is never reported.
 */
export function countAsStream(request: IncomingMessage, response: ServerResponse): void {
  releaseRequest(request);
  const connection = connectionOf(request);
  if (!connection || isGone(response)) return;
  connection.beginStream();
  response.on("close", connection.endStream);
}

/**
 * Limits the connections of a server.
 *
 * - Their number is bounded. A new one above the bound replaces the stranger's connection that has been without work for
 *   longest: idle, or with a request that is still arriving. If the server works for all of them, the new one is closed.
 * - Their responses are bounded, see `createAnswers`, and so is the memory of strangers' requests, see `limitRequestMemory`.
 * - A connection that breaks off never causes an uncaught error: sockets, requests and responses have an error listener all
 *   their life. Other listeners come and go, and node may emit an error in between.
 */
export function guardConnections(
  server: Server,
  limits: ConnectionLimits,
  { knowsPeer = () => false, secure, log }: GuardOptions = {},
): Connections {
  const answers = createAnswers(limits);
  const memory = limitRequestMemory(limits.requestBytes);
  const all = new Set<Connection>();
  /** Strangers' connections that carry streams. */
  let streaming = 0;
  /** Strangers' connections without streams, by address. */
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
      const connection = connectionOn(socket);
      mark(secured, connection);
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
        // An HTTP/2 connection is gone before its streams are.
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
      pending: () => 0, // for HTTP/1.1: a response is over only when it was taken
    };
    const close = () => {
      if (!all.delete(connection)) return;
      answers.forget(connection);
      memory.forget(connection);
      leave(connection);
    };
    mark(socket, connection);
    all.add(connection);
    count(connection);
    rest(connection);
    socket.on("close", close);
    return true;
  }

  /** Searches all connections when room is needed: keeping them in order would cost every request more. */
  function makeRoom(isAmong: (connection: Connection) => boolean): boolean {
    let longest: Connection | undefined;
    for (const one of all) {
      if (one.isPeer || one.served > 0 || !isAmong(one)) continue;
      if (!longest || one.restedAt < longest.restedAt) longest = one;
    }
    longest?.giveUp("others need its place");
    return longest !== undefined;
  }

  /** Makes a connection the last of those that may be closed for another. */
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
  /** Stops counting a connection as a stranger's. */
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

function hasBody({ stream, headers }: IncomingMessage & { stream?: { endAfterHeaders?: boolean } }): boolean {
  if (stream) return stream.endAfterHeaders !== true;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
