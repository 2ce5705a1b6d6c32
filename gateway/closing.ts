/** Stops the gateway without losing a request that is on its way. */
import { announceClose, closePort } from "@petstore/rpc/http/one-port";
import type { Runtime } from "@petstore/runtime/clock";
import type { FastifyInstance } from "fastify";

/** How long running requests may go on after the server stopped accepting connections, in milliseconds. */
const GRACE_MS = 8_000;

export type Closing = ReturnType<typeof createClosing>;

/**
 * A server that closes a kept-alive connection resets a request that may be on its way there (RFC 9112, 9.5). So the server
 * first goes on serving for the lame-duck time, and closes each connection after its next answer, which announces that
 * (`Connection: close`): load balancers and clients need that time to notice. What is idle after it has been idle throughout,
 * and is closed last. `endStreams` is called before that, and not sooner, as their callers reconnect at once.
 */
export function createClosing({
  lameDuckMs,
  endStreams,
  sleep,
}: Pick<Runtime, "sleep"> & { readonly lameDuckMs: number; readonly endStreams?: () => void }) {
  let accepting = true;
  const close = async (app: FastifyInstance) => {
    const { server } = app;
    accepting = false;
    announceClose(server);
    if (server.listening) await sleep(lameDuckMs);
    await closePort(server, GRACE_MS, endStreams);
    // While closing, Fastify ends a connection after its next answer, even if more requests wait. By now none is open.
    await app.close();
  };
  return {
    /** False from the moment the gateway is told to stop: no more requests are to be sent to it. */
    isAccepting: () => accepting,
    /** Resolves when the last request is answered and the last connection closed. */
    close,
  };
}
