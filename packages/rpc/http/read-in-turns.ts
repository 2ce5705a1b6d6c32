/** Lets HTTP/1.1 connections take turns, so that what one of them has sent does not hold up the others. */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { callerNetwork } from "./caller-network.ts";
import type { TurnsAtOnce } from "./turns.ts";

/** Bytes that node's parser is given at a time. It emits all requests in them at once, about 60 of the smallest. */
const SLICE_BYTES = 1024;

/** Unanswered requests of one connection. While there are as many, nothing more is read. */
const PIPELINED_REQUESTS = 10;

/** Slices that are kept of incomplete header fields. */
const HEAD_SLICES = 64;

/**
 * How long a client that has ended its side is believed to wait for its response, in milliseconds. One that has gone looks
 * the same, so its request is given up after this time.
 */
export const HALF_CLOSED_MS = 1_000;

/**
 * Lets the connections of a server take turns, address by address. In its turn a connection takes one step: it begins the
 * next request that was read, or reads a slice of what has arrived. Input that fits one slice, on a connection without other
 * requests, is read at once while nothing waits for a turn; nearly every request is. With `PIPELINED_REQUESTS` unanswered
 * requests a connection reads no further, so that what is kept for them is bounded: the rest waits as bytes, and TCP flow
 * control makes the client wait in the end. Pipelined requests begin one after the other (RFC 9112, 9.3.2), each when the
 * client has taken the response before it, and none on a connection that is over.
 *
 * Otherwise node parses everything that one read of the socket has brought, 64 KiB with some thousand requests, or ten
 * thousand chunks of a body, and goes on when the first request has ended the connection.
 *
 * Must be called before other listeners replace the server's own.
 */
export function readInTurns(server: Server, turns: TurnsAtOnce): void {
  const connections = new WeakMap<object, Connection>();
  const open = new Set<Connection>();
  server.on("connection", (socket: Socket) => {
    const connection = readInSlices(socket, turns, server);
    connections.set(socket, connection);
    open.add(connection);
    socket.once("close", () => open.delete(connection));
  });
  closeIdleALittleLater(server, open);
  const refusals = server.listeners("clientError") as ((error: Error, socket: Duplex) => void)[];
  server.removeAllListeners("clientError");
  const refuse = (error: ParserError, socket: Duplex) => {
    for (const listener of refusals) listener.call(server, error, socket);
    if (refusals.length === 0) refusePlainly(error, socket);
  };
  server.on("clientError", (error: ParserError, socket) => {
    const connection = connections.get(socket);
    if (!connection) return refuse(error, socket);
    if (error.rawPacket) error.rawPacket = connection.head();
    connection.fail(() => refuse(error, socket));
  });
  const listeners = server.listeners("request") as ((request: IncomingMessage, response: ServerResponse) => void)[];
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    const begin = () => {
      // Node's parser takes "HTTP/2.0" for a version of HTTP/1; it refuses most others by itself.
      if (request.httpVersionMajor !== 1) return refuse(new Error("Parse Error: Invalid HTTP version"), request.socket);
      for (const listener of listeners) listener.call(server, request, response);
    };
    connections.get(request.socket)?.add({ request, response, begin, begun: false });
  });
}

/**
 * Closes idle connections two turns of the event loop later than node does. Node takes a connection for idle while its
 * parser has seen nothing of a request, and closes it as soon as the server closes. After two turns everything that had
 * arrived has been read (the first may have looked before it came), and what waits for its turn is shown to the parser. So a
 * request that had arrived is answered, and its response says that it is the last.
 */
function closeIdleALittleLater(server: Server, open: ReadonlySet<Connection>): void {
  const closeIdle = server.closeIdleConnections.bind(server);
  let isDue = false;
  server.closeIdleConnections = async () => {
    if (isDue) return;
    isDue = true;
    await nextTurn();
    await nextTurn();
    isDue = false;
    for (const connection of open) connection.beginToRead();
    closeIdle();
  };
}

/** Usually an error of node's parser, which alone says in `rawPacket` what it could not read. A timeout has none. */
type ParserError = Error & { readonly code?: string; rawPacket?: Buffer };

/** Answers as node does when there is no listener. */
function refusePlainly({ code = "" }: ParserError, socket: Duplex): void {
  const status =
    { HPE_HEADER_OVERFLOW: 431, HPE_CHUNK_EXTENSIONS_OVERFLOW: 413, ERR_HTTP_REQUEST_TIMEOUT: 408 }[code] ?? 400;
  const words = code === "ERR_SSL_HTTP_REQUEST" ? "This port takes https alone.\n" : "";
  if (socket.writable) socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n${words}`);
  socket.destroy();
}

/** A request that waits for its answer. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly begin: () => void;
  begun: boolean;
}

interface Connection {
  /** To be called when a request was read. */
  add(exchange: Exchange): void;
  /** What was read so far of the request whose header fields are arriving. */
  head(): Buffer;
  /**
   * To be called when nothing more can be read, or must be, as behind CONNECT. Calls `refuse` when the requests before are
   * answered: the first response is for the first request (RFC 9112, 9.3.2), so its caller would take an earlier refusal for
   * its own, and believe that its request was not carried out.
   */
  fail(refuse: () => void): void;
  /** Reads a slice now if every request read before is answered and more has arrived. */
  beginToRead(): void;
}

/** Takes over the reading of a socket that node's HTTP server has begun to listen to. */
function readInSlices(socket: Socket, turns: TurnsAtOnce, server: Server): Connection {
  const caller = callerNetwork(socket.remoteAddress);
  const unanswered: Exchange[] = [];
  let newest: IncomingMessage | undefined;
  let head: Buffer[] = [];
  let paused = false;
  /** Whether input is passed on as it arrives. Else it waits in the socket. */
  let isFlowing = true;
  let isPipelined = false;
  let endWaits = false;
  let patience: NodeJS.Timeout | undefined;
  let refuse: (() => void) | undefined;
  let isRefused = false;

  const queue = () => turns(caller, step);
  const isOver = () => socket.destroyed || socket.writableEnded;
  /**
   * Whether the newest request was answered before its content arrived. The client would take a second response for the one
   * to its next request, or for a part of the first.
   */
  const isNewestAnswered = () =>
    newest?.complete === false && (unanswered.find(({ request }) => request === newest)?.response.headersSent ?? true);
  const isAnyComplete = () => unanswered.some(({ request }) => request.complete);

  function step(): void {
    const [first] = unanswered;
    if (first && !first.begun) {
      begin(first);
      // Its body may have arrived already, and nothing else would read it.
      if (!first.request.complete) queue();
    } else if (refuse) return;
    else if (!paused && !isOver() && unanswered.length < PIPELINED_REQUESTS && socket.readableLength > 0) {
      readSlice();
      if (socket.readableLength > 0) queue();
      else rest();
    } else if (socket.readableLength === 0) rest();
  }

  /** To be called when everything that has arrived was read. */
  function rest(): void {
    if (refuse) return;
    socket.read(); // for the event "end"
    // Node closes idle connections only once, when a server closes: this one may have become idle later.
    if (unanswered.length === 0 && !server.listening) server.closeIdleConnections();
    if (!paused && !isOver() && unanswered.length === 0) flow();
  }

  function readSlice(): void {
    socket.read(Math.min(SLICE_BYTES, socket.readableLength));
  }

  function flow(): void {
    if (isFlowing) return;
    isFlowing = true;
    resume.call(socket);
  }

  function stopFlowing(): void {
    isFlowing = false;
    pause.call(socket);
  }

  function refuseInTurn(): void {
    if (!refuse || isRefused || isAnyComplete()) return;
    isRefused = true;
    if (isNewestAnswered()) socket.end(() => socket.destroy());
    else refuse();
  }

  function begin(exchange: Exchange): void {
    exchange.begun = true;
    // The previous response said that it was the last, or the client has gone. Node does not tell the requests behind it.
    if (isOver()) exchange.response.emit("close");
    else exchange.begin();
  }

  // A paused stream emits "data" for what is read, as much as was asked for. Node's HTTP server reads from the handle, past
  // the stream, but stops doing so when a listener to "data" is added. The latter is not documented.
  const { push, pause, resume } = socket;
  socket.push = (chunk: Buffer | null, encoding) => {
    if (isFlowing && chunk && (chunk.length > SLICE_BYTES || unanswered.length > 0 || !turns.atOnce())) stopFlowing();
    const wantsMore = push.call(socket, chunk, encoding);
    if (!isFlowing) queue();
    return wantsMore;
  };
  if (socket.readableLength > 0) {
    stopFlowing();
    queue();
  }
  socket.prependListener("data", (slice: Buffer) => {
    if (newest?.complete === false) head = []; // the body of the newest request is still arriving
    if (head.length < HEAD_SLICES) head.push(slice);
  });
  const drains = socket.listeners("drain") as (() => void)[];
  // On "end" node gives up unanswered requests at once: those that had to wait for their turn would get no response.
  const listeners = socket.listeners("end") as (() => void)[];
  const giveUp = () => {
    endWaits = false;
    clearTimeout(patience);
    if (socket.destroyed) return; // node may have given its parser to another connection
    for (const listener of listeners) listener.call(socket);
  };
  const end = () => {
    endWaits = isAnyComplete();
    if (!endWaits) return giveUp();
    // A client that has pipelined requests has not gone after the first of them: it waits for all responses.
    if (!isPipelined && !refuse) patience ??= setTimeout(giveUp, HALF_CLOSED_MS).unref();
  };
  socket.removeAllListeners("end").on("end", end);
  socket.pause = () => {
    paused = true;
    stopFlowing();
    return socket;
  };
  socket.resume = () => {
    if (paused) queue();
    paused = false;
    return socket;
  };

  return {
    add(exchange) {
      newest = exchange.request;
      isPipelined = unanswered.length > 0;
      head = head.slice(-1);
      unanswered.push(exchange);
      exchange.response.once("close", () => {
        unanswered.splice(unanswered.indexOf(exchange), 1);
        refuseInTurn();
        if (endWaits) end();
        if (unanswered.length > 0 || socket.readableLength > 0 || !server.listening) queue();
        else if (!isFlowing) rest();
      });
      if (unanswered.length === 1) begin(exchange);
    },
    head: () => Buffer.concat(head),
    fail(how) {
      if (refuse) return; // it is being refused already
      refuse = how;
      // After CONNECT node removes its own listeners, and earlier responses would not learn that they may go on.
      for (const listener of drains) socket.off("drain", listener).on("drain", listener);
      refuseInTurn();
    },
    beginToRead() {
      if (unanswered.length === 0 && !refuse && !paused && !isOver() && socket.readableLength > 0) readSlice();
    },
  };
}
