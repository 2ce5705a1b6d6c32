/** Calling a service of the petstore: plain gRPC below, and above it what every call needs. */

import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Deps } from "../deps.ts";
import { SECRET_HEADER } from "./call.ts";
import { coalescing } from "./envelope-client.ts";
import { askingAgain } from "./floor.ts";
import { knowingLostReplies } from "./lost-reply.ts";
import { MAX_MESSAGE_BYTES } from "./message-limit.ts";
import { retrying } from "./retry.ts";

export interface ServiceTransportOptions extends Pick<Deps, "clock" | "random" | "sleep"> {
  /** Where the service is, such as "http://127.0.0.1:8081". */
  readonly baseUrl: string;
  /** Lets the call through to internal services, and its caller header be believed. */
  readonly secret: string;
}

/**
 * A transport to one service. From the inside out: gRPC over one HTTP/2 connection; calls of one turn of the event loop
 * travel together; a lost reply is "unavailable"; what may be repeated is repeated; a create with an idempotency key that
 * was sent back asks again.
 */
export function createServiceTransport({
  baseUrl,
  secret,
  ...deps
}: ServiceTransportOptions): Transport & { close(): void } {
  const sessions = new Http2SessionManager(baseUrl, { pingIntervalMs: 10_000, pingTimeoutMs: 3_000 });
  const grpc = createGrpcTransport({
    baseUrl,
    sessionManager: sessions,
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    interceptors: [
      (next) => (request) => {
        request.header.set(SECRET_HEADER, secret);
        return next(request);
      },
    ],
  });
  const transport = askingAgain(retrying(knowingLostReplies(coalescing(grpc)), deps), deps);
  return { unary: transport.unary, stream: transport.stream, close: () => sessions.abort() };
}
