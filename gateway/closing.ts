/** Stops the gateway without losing a request that is on its way. */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { acceptWaiting } from "@petstore/rpc/http/listen";
import { announceClose } from "@petstore/rpc/http/one-port";
import type { Runtime } from "@petstore/runtime/clock";
import type { FastifyInstance } from "fastify";

/** How long running requests may go on after the server stopped accepting connections, in milliseconds. */
const GRACE_MS = 8_000;

export interface ClosingOptions extends Pick<Runtime, "sleep"> {
  /**
   * How long the server goes on serving after it was told to stop, in milliseconds: load balancers and clients need that
   * time to notice.
   */
  readonly lameDuckMs: number;
  /** Ends streams gracefully. Called after the server stopped accepting connections, as the callers reconnect at once. */
  readonly endStreams?: () => void;
}

export interface Closing {
  /** False from the moment the gateway is told to stop: no more requests are to be sent to it. */
  isAccepting(): boolean;
  /** Resolves when the last request is answered and the last connection closed. */
  close(): Promise<void>;
}

/**
 * A server that closes a kept-alive connection resets a request that may be on its way there (RFC 9112, 9.5). So the server
 * first goes on serving for the lame-duck time, and closes each connection after its next answer, which announces that
 * (`Connection: close`). What is idle after that time has been idle throughout, and is closed last.
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
    // `server.close` would do this first. Node counts a connection as idle while its last answer is still being written.
    const closeIdle = server.closeIdleConnections.bind(server);
    server.closeIdleConnections = () => {};
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    server.close(() => resolve());
    endStreams?.();
    await answers.allWritten();
    closeIdle();
    await closed;
    clearTimeout(cutOff);
    // While closing, Fastify ends a connection after its next answer, even if more requests wait. By now none is open.
    await app.close();
  };
  return { isAccepting: () => accepting, close };
}

/** Whether no unread bytes follow the requests read so far. Of many pipelined requests, the last are read later. */
const isReadToEnd = (socket: Socket) => socket.readableLength === 0;

/** Tracks the newest answer of each connection until that answer is finished and no unread request follows it. */
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
  // One listener for all answers: a closure for each request would cost an allocation.
  function closed(this: ServerResponse): void {
    settle(this.req.socket, this);
  }
  /** Keyed by the socket that carries HTTP. With TLS this is not the socket that the server accepted. */
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
    // A pipelined request: the connection has to outlive the previous answer.
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
     * Resolves when every answer is finished and every request that has arrived is read. This takes two turns of the event
     * loop without a new request, because the first may have polled the sockets before the request arrived.
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
