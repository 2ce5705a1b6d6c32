/** How the gateway stops without losing a request that is on its way. */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { acceptWaiting } from "@petstore/rpc/http/listen";
import { announceClose } from "@petstore/rpc/http/one-port";
import type { Runtime } from "@petstore/runtime/clock";
import type { FastifyInstance } from "fastify";

/** How long requests that run may go on once the server takes no more connections. */
const GRACE_MS = 8_000;

export interface ClosingOptions extends Pick<Runtime, "sleep"> {
  /** How long the server goes on after it was told to stop, so that load balancers and clients hear of it. */
  readonly lameDuckMs: number;
  /** Ends streams in good order. Called when no more connections are taken, for their callers come back at once. */
  readonly endStreams?: () => void;
}

export interface Closing {
  /** False from the moment the gateway is told to stop: no more requests are to be sent to it. */
  isAccepting(): boolean;
  /** Resolves when the last request is answered and the last connection closed. */
  close(): Promise<void>;
}

/**
 * A server that closes a kept-alive connection resets the request that may be on its way there (RFC 9112, 9.5). So all
 * are served as before for a while, but each connection ends with its next answer, which says so (`Connection: close`).
 * What is idle then has been idle all the time; it is closed last.
 */
export function createClosing(app: FastifyInstance, { lameDuckMs, endStreams, sleep }: ClosingOptions): Closing {
  const { server } = app;
  const answers = watchAnswers(server);
  let accepting = true;
  const close = async () => {
    accepting = false;
    answers.announceClose();
    if (server.listening) await sleep(lameDuckMs);
    await acceptWaiting(server);
    const cutOff = setTimeout(() => server.closeAllConnections(), GRACE_MS);
    // Node does this first, and counts a connection as idle whose last answer is still being written.
    const closeIdle = server.closeIdleConnections.bind(server);
    server.closeIdleConnections = () => {};
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    server.close(() => resolve());
    endStreams?.();
    await answers.allWritten();
    closeIdle();
    await closed;
    clearTimeout(cutOff);
    // Fastify ends a connection with the next answer that it begins, whatever waits behind it: so there is none any more.
    await app.close();
  };
  return { isAccepting: () => accepting, close };
}

/** Nothing has arrived behind the requests that were read: of many pipelined ones the last are read later. */
const isReadToEnd = (socket: Socket) => socket.readableLength === 0;

/** The newest answer of each connection, as long as it is unfinished or there are requests that are not read yet. */
function watchAnswers(server: Server) {
  const connections = new Map<Socket, { newest: ServerResponse | undefined }>();
  let unfinished = 0;
  let announcing = false;
  let written: (() => void) | undefined;
  const done = (connection: { newest: ServerResponse | undefined }) => {
    if (!connection.newest) return;
    connection.newest = undefined;
    if (--unfinished === 0) written?.();
  };
  const settle = (socket: Socket, response: ServerResponse) => {
    const connection = connections.get(socket);
    if (connection?.newest !== response) return;
    if (isReadToEnd(socket)) done(connection);
    else socket.once("data", () => settle(socket, response)); // the next request, or the rest of one that was answered early
  };
  // One for all answers: each request would have to make its own.
  function closed(this: ServerResponse): void {
    settle(this.req.socket, this);
  }
  /** Whatever HTTP is spoken over: with TLS that is not what was accepted. */
  const connectionOf = (socket: Socket) => {
    const known = connections.get(socket);
    if (known) return known;
    const connection = { newest: undefined };
    connections.set(socket, connection);
    socket.once("close", () => {
      connections.delete(socket);
      done(connection);
    });
    return connection;
  };
  server.prependListener("request", ({ socket }, response) => {
    const connection = connectionOf(socket);
    const before = connection.newest;
    if (!before) unfinished++;
    connection.newest = response;
    response.on("close", closed);
    if (!announcing) return;
    // Pipelined: the connection has to outlive the answer before.
    if (before && !before.headersSent) before.shouldKeepAlive = true;
    if (isReadToEnd(socket)) response.shouldKeepAlive = false;
  });
  return {
    /** From now on each connection ends with the answer to the last request that has arrived on it. */
    announceClose() {
      announcing = true;
      announceClose(server);
      for (const [socket, { newest }] of connections)
        if (newest && !newest.headersSent && isReadToEnd(socket)) newest.shouldKeepAlive = false;
    },
    /**
     * Resolves when no answer is unfinished, and no request has arrived that is not read yet: two turns of the event loop
     * bring none, of which the first may have read before it arrived.
     */
    async allWritten(): Promise<void> {
      for (let quietTurns = 0; quietTurns < 2; ) {
        if (unfinished > 0) await new Promise<void>((resolve) => (written = resolve));
        await nextTurn();
        quietTurns = unfinished > 0 ? 0 : quietTurns + 1;
      }
    },
  };
}
