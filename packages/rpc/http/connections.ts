/**
 * The connections of a port: how many there may be, which one gives way to a new one, which are of the system's own processes,
 * and how they end when the port closes: their clients are told, those without a request go first, and at last all.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Session, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { callerNetwork } from "./hosts.ts";
import type { OnePortLimits } from "./limits.ts";

/** One connection. A stranger is a client that has not proved to be one of the system's own processes. */
export class Connection {
  readonly address: string;
  readonly end: () => void;
  /** Counts a stream. Returns a function to call when it ends. */
  readonly beginStream: () => () => void;
  isPeer = false;
  /** A client certificate has proved that it is a peer, whatever its requests show. */
  isProven = false;
  /** Requests that are not answered yet. */
  open = 0;
  /** The response to the last request that was read. */
  newest: ServerResponse | undefined;
  /** Open streams, which have a limit of their own: a stranger's connection that has one does not count. */
  streams = 0;
  /** When the server last had work for it, as the value of a counter. */
  restedAt: number;
  /** Nothing that follows on it is served. */
  isLast = false;
  /** Called once when all requests that have arrived are answered. */
  whenAnswered: (() => void) | undefined;
  /** Of HTTP/2, which has a graceful end of its own. */
  session: ServerHttp2Session | undefined;
  isClosed = false;

  constructor(socket: Socket, address: string, restedAt: number, beginStream: (one: Connection) => () => void) {
    this.address = address;
    this.restedAt = restedAt;
    this.end = () => void socket.destroy();
    this.beginStream = () => {
      socket.setKeepAlive(PROBE);
      return beginStream(this);
    };
  }
}

/** A request of HTTP/1.1, or of HTTP/2 by the compatibility API. */
export type Request = IncomingMessage & { readonly stream?: ServerHttp2Stream };

const connectionsByCarrier = new WeakMap<object, Connection>();

/** What carries a request: its session, or its socket. */
const carrierOf = ({ stream, socket }: Request): object => stream?.session ?? socket;

/** The connection of a request; undefined once that is closed. */
export const connectionOf = (request: IncomingMessage): Connection | undefined =>
  connectionsByCarrier.get(carrierOf(request));

/** The connection of a socket by which a request has come. */
export const connectionOn = (socket: Socket): Connection | undefined => connectionsByCarrier.get(socket);

/** Whether a request that has arrived waits for its answer. One whose body still comes may wait for more than its answer. */
export const owesAnswers = ({ open, newest }: Connection): boolean => open > (newest && !newest.req.complete ? 1 : 0);

/** Whether the connection of a request has proved by its certificate that it is one of the system's own processes. */
export const isProven = (request: IncomingMessage): boolean => connectionOf(request)?.isProven === true;

/** A port of the other end: no two connections to one port have the same. */
const endOf = ({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string =>
  `${remoteAddress} ${remotePort}`;

/**
 * TCP keep-alive for a silent client with a stream. A client that was cut off is given up within 14 seconds if no data is in
 * flight to it; otherwise the kernel retransmits for as long as it is configured to.
 */
const PROBE = { enable: true, initialDelay: 5_000, interval: 3_000, count: 3 };

export type Connections = ReturnType<typeof createConnections>;

/** `proves` judges the certificate of a connection with TLS, once. */
export function createConnections(
  limits: Pick<OnePortLimits, "connections" | "connectionsPerAddress" | "peerStreams">,
  proves: (socket: TLSSocket) => boolean = () => false,
) {
  const all = new Map<string, Connection>();
  /** Strangers' connections without streams, by address. */
  const strangers = new Map<string, number>();
  /** Strangers' connections that carry streams. */
  let streaming = 0;
  let moments = 0;
  let areEnding = false;

  /** Takes a connection that was accepted. Returns false if there is no room for it. */
  function admit(socket: Socket): boolean {
    const address = callerNetwork(socket.remoteAddress);
    const { connectionsPerAddress = Number.POSITIVE_INFINITY } = limits;
    const same = strangers.get(address) ?? 0;
    if (same >= connectionsPerAddress && !makeRoom((one) => one.address === address)) return false;
    if (all.size - streaming >= limits.connections && !makeRoom(() => true)) return false;
    const connection = new Connection(socket, address, ++moments, beginStream);
    const key = endOf(socket);
    all.set(key, connection);
    count(connection, 1);
    socket.once("close", () => {
      connection.isClosed = true;
      if (all.get(key) === connection) all.delete(key);
      leave(connection);
    });
    return true;
  }

  /** Ends the stranger's connection that has been without work for longest. */
  function makeRoom(isAmong: (connection: Connection) => boolean): boolean {
    let longest: Connection | undefined;
    for (const one of all.values()) {
      if (one.isPeer || one.open > 0 || !isAmong(one)) continue;
      if (!longest || one.restedAt < longest.restedAt) longest = one;
    }
    longest?.end();
    return longest !== undefined;
  }

  function count({ address }: Connection, more: 1 | -1): void {
    const now = (strangers.get(address) ?? 0) + more;
    if (now > 0) strangers.set(address, now);
    else strangers.delete(address);
  }

  /** Stops counting a connection as a stranger's. */
  function leave(connection: Connection): void {
    if (connection.isPeer) return;
    if (connection.streams > 0) streaming--;
    else count(connection, -1);
  }

  function trust(connection: Connection, session?: Http2Session): void {
    if (connection.isPeer) return;
    leave(connection);
    connection.isPeer = true;
    session?.settings({ maxConcurrentStreams: limits.peerStreams });
  }

  /** The connection of a request, which counts as busy until `answered` is called. Undefined if it is closed or serves no more. */
  function begin(request: Request, response: ServerResponse): Connection | undefined {
    const carrier = carrierOf(request);
    let connection = connectionsByCarrier.get(carrier);
    if (!connection) {
      connection = all.get(endOf(request.socket));
      if (!connection) return undefined;
      connectionsByCarrier.set(carrier, connection);
      const session = request.stream?.session;
      const socket = session?.socket ?? request.socket;
      if ((socket as TLSSocket).encrypted && proves(socket as TLSSocket)) {
        connection.isProven = true;
        trust(connection, session);
      }
    }
    if (connection.isLast) return undefined;
    // The connection has to outlive the answer before.
    if (areEnding && connection.newest && !connection.newest.headersSent) connection.newest.removeHeader("connection");
    connection.open++;
    connection.newest = response;
    if (areEnding) tellEnd(connection);
    return connection;
  }

  /** Tells an HTTP/1.1 client that its connection ends with the answer to the last request that was read. */
  function tellEnd({ session, newest }: Connection): void {
    if (!session && newest && !newest.headersSent) newest.setHeader("connection", "close");
  }

  function answered(connection: Connection): void {
    connection.restedAt = ++moments;
    if (--connection.open === 0) connection.newest = undefined;
    if (owesAnswers(connection)) return;
    connection.whenAnswered?.();
    connection.whenAnswered = undefined;
  }

  function beginStream(connection: Connection): () => void {
    if (connection.streams++ === 0 && !connection.isPeer) {
      count(connection, -1);
      streaming++;
    }
    return () => {
      if (--connection.streams > 0 || connection.isPeer || connection.isClosed) return;
      streaming--;
      count(connection, 1);
    };
  }

  return {
    admit,
    begin,
    answered,
    trust,
    find: (socket: Pick<Socket, "remoteAddress" | "remotePort">) => all.get(endOf(socket)),
    /** From now on HTTP/1.1 clients are told that their connection ends with its last answer (RFC 9112, 9.6). */
    announceEnd(): void {
      areEnding = true;
      for (const connection of all.values()) tellEnd(connection);
    },
    /** Tells the clients of HTTP/2 to go elsewhere (GOAWAY). Requests that have begun are answered; later ones are refused. */
    goAway(): void {
      for (const { session } of all.values()) session?.close();
    },
    /** Ends the HTTP/1.1 connections without a request. */
    endIdle(): void {
      for (const { open, session, end } of all.values()) if (open === 0 && !session) end();
    },
    endAll(): void {
      for (const { end } of all.values()) end();
    },
  };
}
